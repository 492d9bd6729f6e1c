"""Installing a package for a smoke test runs nothing of it, and of nothing that it requires."""

import io
import os
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest
from tests.support.helpers import Command

from torchyard.errors import CheckError, HostError, SmokeError
from torchyard.host import bubblewrap
from torchyard.host.bubblewrap import can_confine, confined
from torchyard.host.process import capture
from torchyard.smoke import confined as smoke_confined
from torchyard.smoke.confined import refuse_direct_references, run_pip, run_uv
from torchyard.smoke.install import _wanted, install_wheel, make_uv_venv
from torchyard.smoke.installation import (
    Installation,
    Installer,
    installed_dist_infos,
    link_distribution,
    same_files,
    share_requirements,
)
from torchyard.smoke.overlay import make_overlay
from torchyard.smoke.package_under_test import PackageUnderTest
from torchyard.smoke.wheelhouse import WheelSources, gather
from torchyard.toolchain.interpreters import running_interpreter

BACKEND = """\
from pathlib import Path
Path({marker!r}).write_text("ran")
def get_requires_for_build_wheel(settings=None): return []
def prepare_metadata_for_build_wheel(folder, settings=None): raise SystemExit("built")
def build_wheel(folder, settings=None, metadata=None): raise SystemExit("built")
"""
PROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'


def make_wheel(folder: Path, name: str, *requires: str) -> Path:
    path = folder / f"{name}-1.0-py3-none-any.whl"
    about = f"{name}-1.0.dist-info"
    listed = "".join(f"{line}\n" for line in requires)
    files = {
        f"{name}/__init__.py": "",
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{listed}",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{about}/RECORD"] = "".join(f"{file},,\n" for file in (*files, f"{about}/RECORD"))
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)
    return path


class Trap:
    """A source distribution that writes a file when it is built, and a folder of wheels."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.marker = folder / "marker"
        self.sdist = folder / "evil-1.0.tar.gz"
        files = {"pyproject.toml": PROJECT, "backend.py": BACKEND.format(marker=str(self.marker))}
        with tarfile.open(self.sdist, "w:gz") as archive:
            for name, text in files.items():
                info = tarfile.TarInfo(f"evil-1.0/{name}")
                info.size = len(text)
                archive.addfile(info, io.BytesIO(text.encode()))


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trap]:
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("UV_FIND_LINKS", str(folder))
    monkeypatch.setenv("UV_NO_INDEX", "1")
    found = Trap(folder)
    yield found
    assert not found.marker.exists(), "a source distribution was built"


REQUIRED = {
    "a file": "Requires-Dist: evil @ {uri}",
    "a file, in another case": "requires-dist: evil @ {uri}",
    "a file, on another line": "Requires-Dist: evil\n @ {uri}",
    "a file, with an extra": "Requires-Dist: evil @ {uri} ; extra == 'all'",
    "a file, for another system": "Requires-Dist: evil @ {uri} ; sys_platform == 'win32'",
    "a file, without blanks": "Requires-Dist: evil@{uri}",
    "a web address": "Requires-Dist: evil @ https://example.org/evil-1.0.tar.gz",
    "a wheel by its address": "Requires-Dist: evil @ https://example.org/evil-1.0-py3-none-any.whl",
    "a repository": "Requires-Dist: evil @ git+https://example.org/evil",
    "a repository on the machine": "Requires-Dist: evil @ git+file:///srv/evil",
    "a path": "Requires-Dist: evil @ ./evil-1.0.tar.gz",
    "what can't be read": "Requires-Dist: evil ==== 1",
    "an option": "Requires-Dist: --index-url=https://example.org evil",
}


@pytest.mark.parametrize("requires", REQUIRED.values(), ids=REQUIRED)
def test_a_requirement_by_address_is_refused(requires: str, trap: Trap) -> None:
    line = requires.format(uri=trap.sdist.as_uri())
    wheel = make_wheel(trap.folder, "direct", "Requires-Dist: numpy", line)
    with pytest.raises(CheckError, match=r"`direct-1\.0-py3-none-any\.whl` requires `"):
        refuse_direct_references(wheel)


def test_other_requirements_are_not_refused(trap: Trap) -> None:
    lines = ("Requires-Dist: numpy (>=1.2)", "Requires-Dist: a[b]>=1; python_version<'3'")
    refuse_direct_references(make_wheel(trap.folder, "fine", *lines))


def test_a_wheel_whose_metadata_is_ambiguous_is_refused(trap: Trap) -> None:
    wheel = make_wheel(trap.folder, "direct")
    with zipfile.ZipFile(wheel, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("direct-1.0.dist-info/METADATA", f"Requires-Dist: x @ {trap.sdist}\n")
    with pytest.raises(CheckError, match="no metadata that can be read"):
        refuse_direct_references(wheel)


def test_the_report_says_why_a_package_is_not_installed(
    trap: Trap, torchyard: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = make_wheel(trap.folder, "direct", f"Requires-Dist: evil @ {trap.sdist.as_uri()}")
    monkeypatch.setattr(smoke_confined, "capture", _fail)
    done = torchyard("smoke", wheel, "--level", "import", "--environment", "clean")
    assert done.code == SmokeError.exit_code
    assert "an address, not a package of an index" in done.out + done.err


def test_nothing_is_downloaded_for_such_a_wheel(
    trap: Trap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = make_wheel(trap.folder, "direct", f"Requires-Dist: evil @ {trap.sdist.as_uri()}")
    monkeypatch.setattr(smoke_confined, "capture", _fail)
    with pytest.raises(CheckError, match="an address"):
        gather([wheel], running_interpreter(), tmp_path / "house", WheelSources(), numpy=False)


def test_requirements_come_from_further_indexes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "channel/simple/elsewhere/index.html"
    for folder in (tmp_path / "channel/files", page.parent, tmp_path / "empty"):
        folder.mkdir(parents=True)
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "empty").as_uri())
    make_wheel(tmp_path / "channel/files", "elsewhere")
    page.write_text('<a href="../../files/elsewhere-1.0-py3-none-any.whl">elsewhere</a>')
    wheel = make_wheel(tmp_path, "needy", "Requires-Dist: elsewhere")
    sources = WheelSources(indexes=[(tmp_path / "channel/simple").as_uri()])
    gather([wheel], running_interpreter(), tmp_path / "house", sources, numpy=False)
    assert (tmp_path / "house/elsewhere-1.0-py3-none-any.whl").is_file()


def test_another_wheel_of_the_locked_version_is_refused(trap: Trap, tmp_path: Path) -> None:
    """An index of [smoke] could have a torch of its own; what is tested is the locked one."""
    other = make_wheel(trap.folder, "torch")
    wheel = make_wheel(tmp_path, "needy", "Requires-Dist: torch")
    python = running_interpreter()
    right = WheelSources([f"torch==1.0 --hash=sha256:{sha256(other.read_bytes()).hexdigest()}"])
    gather([wheel], python, tmp_path / "right", right, numpy=False)
    assert (tmp_path / "right" / other.name).is_file()
    other.rename(other.with_name("Torch-1.0-py3-none-any.whl"))  # the same name for installers
    wrong = WheelSources([f"torch==1.0 --hash=sha256:{'0' * 64}"])
    with pytest.raises(CheckError, match=r"is not the wheel in torchyard\.lock"):
        gather([wheel], python, tmp_path / "wrong", wrong, numpy=False)


def test_a_requirement_by_address_further_on_is_refused(trap: Trap, tmp_path: Path) -> None:
    further = make_wheel(tmp_path, "further")
    make_wheel(trap.folder, "direct", f"Requires-Dist: further @ {further.as_uri()}")
    wheel = make_wheel(tmp_path, "needy", "Requires-Dist: direct")
    with pytest.raises((CheckError, HostError), match="further"):
        gather([wheel], running_interpreter(), tmp_path / "house", WheelSources(), numpy=False)


def test_requirements_that_no_index_has_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    wheel = make_wheel(tmp_path, "needy", "Requires-Dist: missing-dependency")
    sources = WheelSources(indexes=["file:///srv/a"])
    with pytest.raises(HostError, match=r"^No matching .* missing-dependency\nindexes: .*srv/a"):
        gather([wheel], running_interpreter(), tmp_path / "house", sources, numpy=False)


def _fail(*_: object, **__: object) -> str:
    pytest.fail("an installer was called")


@pytest.mark.parametrize("sandbox", [True, False], ids=["bwrap", "no bwrap"])
@pytest.mark.parametrize("installer", [Installer.PIP, Installer.UV])
def test_what_is_required_further_on_is_not_built(
    installer: Installer,
    sandbox: bool,
    trap: Trap,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if sandbox and not can_confine():
        pytest.skip("bubblewrap does not work here")
    monkeypatch.setattr(bubblewrap, "can_confine", lambda: sandbox)
    make_wheel(trap.folder, "direct", f"Requires-Dist: evil @ {trap.sdist.as_uri()}")
    wheel = make_wheel(trap.folder, "further", "Requires-Dist: direct")
    package = PackageUnderTest(path=str(wheel), format="wheel", name="further", version="1.0")
    place = tmp_path / "place"
    place.mkdir()
    if installer is Installer.PIP:  # without an environment of its own, which takes seconds
        install: Callable[[], object] = partial(
            run_pip, sys.executable, "download", "-q", str(wheel), cwd=place
        )
    else:
        python = running_interpreter()
        make_uv_venv(python.path, place / "env")
        install = partial(install_wheel, package, python, installer, (), place / "env")
    with pytest.raises(HostError, match=r"is no wheel|URL dependenc") as caught:
        install()
    assert "bwrap" not in str(caught.value)
    assert "InstallationError" not in str(caught.value)


def test_a_wheel_is_installed_in_the_sandbox(trap: Trap, tmp_path: Path) -> None:
    make_wheel(trap.folder, "needed")
    wheel = make_wheel(trap.folder, "fine", "Requires-Dist: needed")
    package = PackageUnderTest(path=str(wheel), format="wheel", name="fine", version="1.0")
    (tmp_path / "place").mkdir()
    python, env = running_interpreter(), tmp_path / "place/env"
    make_uv_venv(python.path, env)
    done = install_wheel(package, python, Installer.UV, (), env)
    assert done.modules == ("fine",)
    assert (Path(done.sites[0]) / "needed/__init__.py").exists()
    assert {path.name for path in (tmp_path / "place").iterdir()} == {"env"}


def test_installers_get_none_of_the_callers_secrets(
    trap: Trap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "UV_PUBLISH_TOKEN", "LD_PRELOAD_X"):
        monkeypatch.setenv(name, "hunter2")
    for name in ("PIP_NO_INDEX", "UV_NO_INDEX"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.example.org")
    monkeypatch.setenv("https_proxy", "http://proxy.example.org")
    monkeypatch.setattr(smoke_confined, "own_program", lambda _: "env")
    said = run_uv(cwd=trap.folder)
    assert "hunter2" not in said
    assert "PIP_INDEX_URL=https://index.example.org\n" in said
    assert "https_proxy=http://proxy.example.org\n" in said


def test_two_wheels_may_have_the_same_file(tmp_path: Path) -> None:
    """Those of CUDA 12.4 all have `nvidia/__init__.py`, and installers keep one."""
    site, target = tmp_path / "site", tmp_path / "target"
    (site / "nvidia").mkdir(parents=True)
    (site / "nvidia/__init__.py").touch()
    for _ in range(2):
        link_distribution(site, target, ["nvidia/__init__.py", "nvidia/missing.py"])
    assert [path.name for path in (target / "nvidia").iterdir()] == ["__init__.py"]


def test_the_record_of_a_wheel_leads_nowhere_else(tmp_path: Path) -> None:
    site, target = tmp_path / "lib/site", tmp_path / "a/b/c/d"
    (site / "x").mkdir(parents=True)
    for path in (tmp_path / "secret", tmp_path / "lib/secret", site / "x/fine.py"):
        path.touch()
    names = ["x/../../secret", "../secret", "x/../../../secret", "/etc/passwd", "x/fine.py"]
    link_distribution(site, target, names)
    made = {str(path.relative_to(tmp_path)) for path in (tmp_path / "a").rglob("*.*")}
    assert made == {"a/b/c/d/x/fine.py"}
    assert not list((tmp_path / "a").rglob("secret"))


@pytest.mark.skipif(not can_confine(), reason="bubblewrap does not work here")
def test_files_with_secrets_are_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text("hunter2", encoding="utf-8")
    (tmp_path / "link").symlink_to("key")
    monkeypatch.setenv("TORCHYARD_KEY", str(tmp_path / "link"))
    script = "cat key link; ls -d key"
    said = capture(confined(["sh", "-c", script], cwd=tmp_path), cwd=tmp_path)
    assert said == "key\n"


@pytest.mark.skipif(not can_confine(), reason="bubblewrap does not work here")
def test_a_confined_program_sees_nothing_of_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "file").write_text("secret", encoding="utf-8")
    script = f"""
cat {outside}/file && echo READ
ls -A {Path.home()} | grep . && echo HOME
ls -A /run | grep -v '^systemd$' | grep . && echo RUN
echo x > {outside}/file && echo WROTE
touch /usr/x /etc/x && echo SYSTEM
mount -o remount,rw,bind / && echo MOUNT
chroot / true && echo CAPS
ls -d /proc/{os.getpid()}/cwd && echo PROCESS
echo mine > {inside}/file
"""
    monkeypatch.chdir(inside)
    said = capture(confined(["sh", "-c", script], cwd=inside), cwd=inside)
    words = {"READ", "WROTE", "SYSTEM", "MOUNT", "CAPS", "PROCESS"}
    assert words.isdisjoint(said.split())
    assert "HOME" not in said or not Path.home().is_relative_to("/home")
    assert (inside / "file").read_text(encoding="utf-8") == "mine\n"
    assert (outside / "file").read_text(encoding="utf-8") == "secret"


def installed(folder: Path, *distributions: str) -> Installation:
    """Write an environment in which each distribution has a module and a program."""
    site = folder / "lib/python3.11/site-packages"
    (folder / "bin").mkdir(parents=True)
    for name in distributions:
        files = (f"{name}/__init__.py", f"{name}-1.dist-info/INSTALLER", f"../../../bin/{name}")
        for file in files:
            (site / file).parent.mkdir(parents=True, exist_ok=True)
            (site / file).write_text(name, encoding="utf-8")
        own = f"{name}-1.dist-info/RECORD"
        rows = [*files, own, "../../../bin/..", "../../../bin/none", "../../../../secret"]
        (site / own).write_text("".join(f"{row},,\n" for row in rows), encoding="utf-8")
    return Installation(
        installer=Installer.UV,
        prefix=str(folder),
        sites=(str(site),),
        distribution=distributions[0],
        modules=(distributions[0],),
    )


def test_requirements_are_unpacked_once(tmp_path: Path) -> None:
    """Those of the next environment are links to those of the first."""
    (tmp_path / "secret").touch()
    made = installed(tmp_path / "first", "thing", "torch", "pip")
    other = installed(tmp_path / "a/second", "pip")
    share_requirements(made, Path(other.prefix))
    names = {str(path.relative_to(other.prefix)) for path in Path(other.prefix).rglob("*")}
    assert {"bin/torch", "bin/pip"} == {name for name in names if name.startswith("bin/")}
    assert not (tmp_path / "a/secret").exists()
    (first,), (second,) = map(Path, made.sites), map(Path, other.sites)
    for name, is_shared in (("torch/__init__.py", True), ("pip/__init__.py", False)):
        assert (first / name).samefile(second / name) == is_shared
    assert sorted(installed_dist_infos(second)) == ["pip", "torch"]


def test_files_are_the_same_if_all_their_bytes_are(tmp_path: Path) -> None:
    one, other = (installed(tmp_path / name, "thing") for name in ("one", "other"))
    assert not same_files(one, other)  # programs name the Python of their environment
    for made in (one, other):
        record = Path(made.sites[0], "thing-1.dist-info/RECORD")
        lines = record.read_text("utf-8").splitlines(keepends=True)
        record.write_text("".join(line for line in lines if "../" not in line), encoding="utf-8")
    Path(other.sites[0], "thing-1.dist-info/INSTALLER").write_text("pip", encoding="utf-8")
    assert same_files(one, other)
    module = Path(other.sites[0], "thing/__init__.py")
    module.write_text("thinG", encoding="utf-8")
    assert not same_files(one, other)
    module.write_text("thing", encoding="utf-8")
    with Path(other.sites[0], "thing-1.dist-info/RECORD").open(
        "a", encoding="utf-8"
    ) as record_file:
        record_file.write("thing/more.py,,\n")
    assert not same_files(one, other)


@pytest.mark.parametrize("name", ["python3.13", "python3.13t"])
def test_an_overlay_has_the_folders_of_its_python(tmp_path: Path, name: str) -> None:
    prefix = tmp_path / "env"
    (prefix / "lib" / name / "site-packages").mkdir(parents=True)
    (prefix / "pyvenv.cfg").touch()
    installation = Installation(
        installer=Installer.PIP, prefix=str(prefix), python=sys.executable, version="3.13.5"
    )
    overlay = make_overlay(installation, tmp_path / "overlay", [tmp_path])
    (site,) = Path(overlay.prefix).glob("lib/*/site-packages")
    assert site.parent.name == name


@pytest.mark.parametrize(
    ("installer", "first", "more"),
    [("pip", "--index-url", "--extra-index-url"), ("uv", "--default-index", "--index")],
)
def test_a_published_package_comes_from_its_index_whatever_the_caller_s_is(
    installer: str, first: str, more: str
) -> None:
    """uv prefers UV_DEFAULT_INDEX, which is always set, to `--index-url`."""
    package = PackageUnderTest(
        path="", format="wheel", name="tiny", version="1.0", index="https://example.org/cpu/"
    )
    words = _wanted(package, Installer(installer), ["https://example.org/torch/"])
    assert words[:4] == [first, "https://example.org/cpu/", more, "https://example.org/torch/"]
    assert words[-2:] == ["--", "tiny==1.0"]
