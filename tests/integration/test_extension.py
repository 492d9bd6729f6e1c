"""An extension is built against a real torch, from `init` to a smoke tested wheel."""

import re
import shutil
from pathlib import Path

import pytest
from tests.support.extensions import assert_sound, build_here, make_environment
from tests.support.helpers import Command

pytestmark = [
    pytest.mark.slow,
    pytest.mark.integration,
    pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed"),
]

PROJECT = Path(__file__).parents[1] / "projects/tinyext"
SMOKE = """\
# level: import
# about: twice is twice
import tinyext
import torch

given = torch.arange(4.0)
assert torch.equal(tinyext.twice(given), given + given)
"""


def test_from_a_checkout_to_a_proven_wheel(
    torchyard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(PROJECT, tmp_path / "tinyext")
    file = tmp_path / "torchyard.toml"
    names = "--recipe extension --name tinyext --version 0.1.0 --path tinyext"
    cell = "--compute cpu --python cp311 --torch 2.13"
    assert torchyard("init", "-f", file, *names.split(), *cell.split()).code == 0
    refused = torchyard("build", "package:*", "-f", file)
    assert "run `torchyard lock`" in refused.err

    locked = torchyard("lock", "-f", file)
    assert locked.code == 0, locked.err
    assert "cpu-torch2.13/cp311: torch 2.13.0" in locked.err
    if "torch 2.13.0+cpu" not in locked.err:
        pytest.skip("the index has no torch without CUDA, which is 3 GB")
    (tmp_path / "smoke").mkdir()
    (tmp_path / "smoke/test_twice.py").write_text(SMOKE, encoding="utf-8")
    with file.open("a", encoding="utf-8") as text:
        text.write('\n[smoke]\nlevel = "import"\ntests = "smoke"\n')
    done = torchyard("build", "-f", file, "-o", tmp_path / "dist")
    assert done.code == 0, done.err

    (wheel,) = (tmp_path / "dist").glob("[!.]*")  # and no archive of debug information
    assert wheel.name.startswith("tinyext-0.1.0+pt213cpu-cp311-cp311-manylinux_2_")
    assert_sound(torchyard, wheel)

    env = tmp_path / "env"
    make_environment(env)
    monkeypatch.setenv("VIRTUAL_ENV", str(env))
    assert build_here(torchyard, file, env).read_bytes() == wheel.read_bytes()


def test_setuptools_compiles_through_the_cache(torchyard: Command, tmp_path: Path) -> None:
    shutil.copytree(PROJECT, tmp_path / "tinyext")
    file = tmp_path / "torchyard.toml"
    names = "--recipe extension --name tinyext --version 0.1.0 --path tinyext"
    cell = "--compute cpu --python cp311 --torch 2.13"
    assert torchyard("init", "-f", file, *names.split(), *cell.split()).code == 0
    said = file.read_text("utf-8")
    file.write_text(said.replace("[toolchain]\n", f'[toolchain]\ncache = "{tmp_path}/cache"\n'))
    assert torchyard("lock", "-f", file).code == 0
    for time, counts in (("first", "cache_misses +1"), ("again", "cache_hits +1")):
        store = tmp_path / time
        done = torchyard("build", "bindings:*", "-f", file, "--store", store)
        assert done.code == 0, done.err
        shown = torchyard("store", "show", "bindings:*", "-f", file, "--store", store)
        assert re.search(f"^{counts}$", shown.out, re.MULTILINE), shown.out
