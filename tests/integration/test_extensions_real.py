"""Real extensions, from their sdists to an environment that `which` said how to make.

The files are those of `examples/extensions`. Compiling takes from three minutes to an hour each;
with a store that is kept, only what is new is compiled.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.extensions import assert_sound, build_here, make_environment
from tests.support.helpers import ROOT, Command, Output
from tests.support.installers import FreshEnvironment
from tests.support.offered import served

from torchyard.toolchain.interpreters import interpreter_for

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed"),
]

EXAMPLES = ROOT / "examples/extensions"
GIVEN = "TORCHYARD_TEST_STORE"
"""The variable that names a store to keep results in, from one run to the next."""

CPU, CUDA = "cpu-torch2.13", "cu132-torch2.15"
CELLS = [
    (name, f"{block}/{python}")
    for block, names in {
        CPU: ("torch-spline-conv", "torch-scatter", "torch-cluster"),
        CUDA: ("causal-conv1d", "torch-spline-conv", "torch-scatter", "torch-cluster"),
    }.items()
    for name in names
    for python in ("cp311", "cp312")
]


class Site:
    """A channel of extensions in a directory, and a store of what they were made of."""

    def __init__(self, torchyard: Command, folder: Path) -> None:
        self.torchyard = torchyard
        self.folder = folder
        self.channel = folder / "channel"
        self.store = os.environ.get(GIVEN) or folder / "store"

    def lock(self, name: str, *, only_cpu: bool = False) -> str:
        """Lock an example, and return what that printed."""
        place = self.folder / name
        shutil.copytree(EXAMPLES / name, place, dirs_exist_ok=True)
        file = place / "torchyard.toml"
        text = file.read_text(encoding="utf-8")
        text = text.replace("https://example.org/ext", self.channel.as_uri())
        if only_cpu:
            text = text.replace(', "torch2.15"', "").replace(', "cu132"', "")
        file.write_text(text, encoding="utf-8")
        return self._call("lock", "-f", file).err

    def build(self, name: str, cell: str, *options: str) -> Path:
        """Build one wheel of an example that is locked, check and try it, and return it."""
        file, dist = self.folder / name / "torchyard.toml", self.folder / "dist" / name
        chosen = f"*/{cell}/*"
        self._call("build", chosen, "-f", file, "--store", self.store, "-o", dist, *options)
        (wheel,) = dist.glob("*.whl")
        return wheel

    def smoke(self, name: str, wheel: Path) -> None:
        """Try a wheel with one installer in one environment, as each installs torch."""
        quick = ("--installer", "uv", "--environment", "clean")
        self._call("smoke", wheel, *quick, "--tests", self.folder / name / "smoke")

    def publish(self, wheel: Path) -> None:
        self._call("publish", wheel, "--to", self.channel, "--external", "*")

    def commands(self, url: str, name: str) -> dict[str, str]:
        words = ("--python", "cp311", "--torch", "2.13.0+cpu", "--json")
        told = json.loads(self._call("which", f"{url}channel", name, *words).out)
        commands: dict[str, str] = told["choice"]["commands"]
        return commands

    def _call(self, *words: object) -> Output:
        done = self.torchyard(*words)
        assert done.code == 0, done.err
        return done


@pytest.fixture
def site(torchyard: Command, tmp_path: Path) -> Site:
    return Site(torchyard, tmp_path)


@pytest.mark.slow
def test_the_quickest_extension_is_built_and_tried(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "torch-spline-conv"
    if "torch 2.13.0+cpu" not in site.lock(name, only_cpu=True):
        pytest.skip("the index has no torch without CUDA, which is 3 GB")
    wheel = site.build(name, f"{CPU}/cp311", "--skip", "smoke:*")
    assert wheel.name.startswith("torch_spline_conv-1.2.2+pt213cpu-cp311-cp311-manylinux_2_")
    assert list(wheel.parent.glob("[!.]*")) == [wheel], "and no archive of debug information"
    assert_sound(site.torchyard, wheel)
    site.smoke(name, wheel)

    env = tmp_path / "env"
    make_environment(env)
    monkeypatch.setenv("VIRTUAL_ENV", str(env))
    options = ("--store", site.store, "--skip", "smoke:*")
    here = build_here(site.torchyard, tmp_path / name / "torchyard.toml", env, *options)
    assert here.read_bytes() == wheel.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "cell"), CELLS)
def test_an_extension_is_built_and_tried(site: Site, name: str, cell: str) -> None:
    label = {CPU: "+pt213cpu-", CUDA: "+pt215cu132-"}[cell.partition("/")[0]]
    site.lock(name)
    assert label in site.build(name, cell).name


@pytest.mark.slow
def test_one_extension_needs_another(site: Site, tmp_path: Path) -> None:
    """torch-sparse imports torch-scatter, which is published first; users install both by one."""
    cell = f"{CPU}/cp311"
    for name in ("torch-scatter", "torch-sparse"):
        site.lock(name)
        site.publish(site.build(name, cell))
    test = EXAMPLES / "torch-sparse/smoke/plain_torch.py"
    with served(tmp_path) as url:
        for tool, command in site.commands(url, "torch-sparse").items():
            folder = tmp_path / tool
            python = interpreter_for("cp311").path
            fresh = FreshEnvironment(folder, own_settings=True, interpreter=python)
            found = fresh.run(command)
            assert found["torch_sparse"] == "0.6.18+pt213cpu"
            assert found["torch_scatter"] == "2.1.2+pt213cpu"
            subprocess.run([folder / "env/bin/python", test], cwd=folder, check=True)
