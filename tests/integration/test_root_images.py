"""Jobs run in a root that is an archive or an OCI image as in a directory."""

import shutil
import tarfile
from pathlib import Path

import pytest
from tests.support.helpers import CORE, WORKS, Command, make_project
from tests.support.roots import make_small_root
from tests.unit.test_root_image import make_layout

from torchyard.host.bubblewrap import can_confine
from torchyard.model.recipe import Stage
from torchyard.toolchain.root_image import ROOTS
from torchyard.workspace.plan import plan_packages

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not can_confine(), reason="bubblewrap does not work here"),
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A project, and a small system beside it: a directory, an archive and an image."""
    file = make_project(tmp_path)
    root = make_small_root(tmp_path / "root")
    with tarfile.open(tmp_path / "root.tar", "w") as tar:
        tar.add(root, ".")
    make_layout(tmp_path / "image", (tmp_path / "root.tar").read_bytes())
    return file


def set_root(file: Path, place: str) -> None:
    text = WORKS.replace("cat {source}/*.txt", "cat /usr/only-here.txt")
    file.write_text(f'{text}[toolchain]\nroot = "{place}"\n', encoding="utf-8")


def identity(file: Path) -> object:
    toolchain = plan_packages(str(file)).config.toolchain
    assert toolchain is not None
    return toolchain.parts["root"]


def fingerprint(file: Path) -> str:
    jobs = plan_packages(str(file)).jobs
    return next(job.fingerprint for job in jobs if job.stage is Stage.CORE)


@pytest.mark.parametrize("place", ["root.tar", "image", "oci:image"])
def test_a_job_runs_in_what_was_unpacked(file: Path, place: str, torchyard: Command) -> None:
    set_root(file, "root")
    known = identity(file), fingerprint(file)
    set_root(file, place)
    assert (identity(file), fingerprint(file)) == known, "the root is what it contains"
    shutil.rmtree(file.parent / "root")
    done = torchyard("build", CORE, "-f", file)
    assert done.code == 0, done.err
    assert torchyard("store", "get", CORE, "-o", file.parent / "got", "-f", file).code == 0
    (made,) = (file.parent / "got").rglob("core.bin")
    assert made.read_text(encoding="utf-8") == "of the root\n"
    unpacked = [
        path for path in (file.parent / ".torchyard/work" / ROOTS).iterdir() if path.is_dir()
    ]
    assert len(unpacked) == 1


def test_a_root_that_is_not_there_is_told(file: Path, torchyard: Command) -> None:
    set_root(file, "missing.tar")
    failed = torchyard("plan", "-f", file)
    assert failed.code == 7
    assert "missing.tar` is not a root" in failed.err
