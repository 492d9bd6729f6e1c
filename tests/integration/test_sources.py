"""Sources of every kind: fetched, patched and identified by what they contain."""

import subprocess
import tarfile
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.support.helpers import CORE, PACKAGE, WORKS, Command, make_project
from tests.support.web import FileServer

from torchyard.host.bubblewrap import can_confine
from torchyard.model.recipe import Stage
from torchyard.store.store import Store
from torchyard.store.trees import fetch_tree
from torchyard.workspace.plan import plan_packages

pytestmark = pytest.mark.integration

SOURCE = "source:demo-1.0"

PATCH = """\
--- a/a.txt
+++ b/a.txt
@@ -1 +1 @@
-some code
+{}
"""


def git(folder: Path, *words: object) -> str:
    own = ("user.name=a", "user.email=a@example.org", "protocol.file.allow=always")
    argv = ["git", *(word for one in own for word in ("-c", one)), *map(str, words)]
    done = subprocess.run(argv, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def make_repository(folder: Path, text: str) -> str:
    """Make a repository with one file, and return its commit."""
    folder.mkdir(exist_ok=True)
    (folder / "a.txt").write_text(text, encoding="utf-8")
    return commit_all(folder)


def commit_all(folder: Path) -> str:
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "all")
    return git(folder, "rev-parse", "HEAD")


def pack(project: Path) -> str:
    """Make an archive of the code of a project, and return its sha256."""
    with tarfile.open(project / "demo-1.0.tar.xz", "w:xz") as tar:
        tar.add(project / "code", "demo-1.0")
    return sha256((project / "demo-1.0.tar.xz").read_bytes()).hexdigest()


def from_archive(project: Path, *more: str, place: str = "demo-1.0.tar.xz") -> str:
    lines = (f'archive = "{place}"', f'sha256 = "{pack(project)}"', *more)
    return WORKS.replace('path = "code"', "\n".join(lines))


def fingerprint_of(file: Path, stage: Stage = Stage.SOURCE) -> str:
    return next(job.fingerprint for job in plan_packages(str(file)).jobs if job.stage is stage)


def source_of(file: Path, path: str = "a.txt") -> bytes:
    """Return a file of the source in the store."""
    store = Store.at(str(file.parent / ".torchyard/store"))
    result = store.find(fingerprint_of(file))
    assert result is not None
    with TemporaryDirectory() as folder:
        fetch_tree(store, result.tree, Path(folder))
        return Path(folder, path).read_bytes()


def test_an_archive_is_its_digest_wherever_it_is(tmp_path: Path, torchyard: Command) -> None:
    file = make_project(tmp_path / "here")
    file.write_text(from_archive(file.parent), encoding="utf-8")
    assert torchyard("build", PACKAGE, "-f", file).code == 0
    assert source_of(file) == b"some code\n"
    here = fingerprint_of(file)
    with FileServer(file.parent) as server:
        other = make_project(tmp_path / "web")
        text = from_archive(file.parent, place=f"{server.url}/demo-1.0.tar.xz")
        other.write_text(text, encoding="utf-8")
        assert fingerprint_of(other) == here
        assert torchyard("build", SOURCE, "-f", other).code == 0
    assert source_of(other) == b"some code\n"


def test_another_archive_ends_the_build_before_anything_is_compiled(
    tmp_path: Path, torchyard: Command
) -> None:
    file = make_project(tmp_path)
    file.write_text(from_archive(tmp_path), encoding="utf-8")
    (tmp_path / "demo-1.0.tar.xz").write_bytes(b"something else")
    failed = torchyard("build", CORE, "-f", file)
    assert failed.code == 7
    assert "demo-1.0.tar.xz has the sha256" in failed.err


def make_sources(project: Path) -> dict[str, str]:
    """Return what [source] can say of the same code."""
    commit = commit_all(project / "code")
    return {
        "git": f'git = "{project / "code"}"\nrev = "{commit}"',
        "path": 'path = "code"',
        "archive": f'archive = "demo-1.0.tar.xz"\nsha256 = "{pack(project)}"',
    }


@pytest.mark.parametrize("kind", ["git", "path", "archive"])
def test_patches_are_applied_to_a_source_of_any_kind(
    kind: str, tmp_path: Path, torchyard: Command
) -> None:
    file = make_project(tmp_path)
    (tmp_path / "patches").mkdir()
    (tmp_path / "patches/2.patch").write_text(PATCH.format("two"), encoding="utf-8")
    change = PATCH.format("three").replace("some code", "two")
    (tmp_path / "last.patch").write_text(change, encoding="utf-8")
    said = make_sources(tmp_path)[kind]
    before = fingerprint_of(file)
    patches = '\npatches = ["patches/*.patch", "last.patch"]'
    file.write_text(WORKS.replace('path = "code"', said + patches), encoding="utf-8")
    done = torchyard("build", SOURCE, "-f", file)
    assert done.code == 0, done.err
    assert source_of(file) == b"three\n"
    first = fingerprint_of(file)
    assert first != before
    (tmp_path / "last.patch").write_text(change.replace("three", "four"), encoding="utf-8")
    assert fingerprint_of(file) != first
    assert torchyard("build", SOURCE, "-f", file).code == 0
    assert source_of(file) == b"four\n"


def test_the_order_of_patches_is_part_of_the_fingerprint(tmp_path: Path) -> None:
    file = make_project(tmp_path)
    found = set()
    for name in ("a", "b"):
        (tmp_path / name).write_text(PATCH.format(name), encoding="utf-8")
    for series in ('["a", "b"]', '["b", "a"]', '["a"]'):
        text = WORKS.replace('path = "code"', f'path = "code"\npatches = {series}')
        file.write_text(text, encoding="utf-8")
        found.add(fingerprint_of(file))
    assert len(found) == 3


def test_a_patch_that_does_not_apply_is_told_with_its_hunk(
    tmp_path: Path, torchyard: Command
) -> None:
    text = WORKS.replace('path = "code"', 'path = "code"\npatches = ["fix.patch"]')
    file = make_project(tmp_path, text)
    wrong = PATCH.format("x").replace("some code", "other code")
    (tmp_path / "fix.patch").write_text(wrong, encoding="utf-8")
    failed = torchyard("build", CORE, "-f", file)
    assert failed.code == 9
    assert "the patch `fix.patch` does not apply: a.txt lacks the lines of its hunk" in failed.err
    assert "create it again from this source" in failed.err
    (tmp_path / "fix.patch").unlink()
    failed = torchyard("build", CORE, "-f", file)
    assert failed.code == 7
    assert "there is no file `fix.patch`" in failed.err


def test_the_commits_of_submodules_are_kept(
    tmp_path: Path, torchyard: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """git takes submodules from other directories of this machine only if it is told to."""
    allowed = {"COUNT": "1", "KEY_0": "protocol.file.allow", "VALUE_0": "always"}
    variables = {f"GIT_CONFIG_{name}": value for name, value in allowed.items()}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    names = ("inner", "outer", "code")
    inner, outer, code = (tmp_path / "repos" / name for name in names)
    (tmp_path / "repos").mkdir()
    commits = {"third_party/outer/inner": make_repository(inner, "inner")}
    make_repository(outer, "outer")
    git(outer, "submodule", "--quiet", "add", inner, "inner")
    commits["third_party/outer"] = commit_all(outer)
    make_repository(code, "some code\n")
    git(code, "submodule", "--quiet", "add", outer, "third_party/outer")
    commit = commit_all(code)
    text = WORKS.replace('path = "code"', f'git = "{code}"\nrev = "{commit}"')
    passed = f'[[override]]\nstage = "source"\npass_env = {list(variables)}\n'
    file = make_project(tmp_path, text + passed)
    done = torchyard("build", SOURCE, "-f", file)
    assert done.code == 0, done.err
    lines = source_of(file, "torchyard-submodules.txt").decode().splitlines()
    assert {line.split()[1]: line.split()[0] for line in lines} == commits


@pytest.mark.skipif(not can_confine(), reason="bubblewrap does not work here")
def test_a_package_is_made_again_from_a_patched_archive(tmp_path: Path, torchyard: Command) -> None:
    """The order in a package has the patches themselves, and the archive's digest."""
    file = make_project(tmp_path)
    (tmp_path / "fix.patch").write_text(PATCH.format("patched"), encoding="utf-8")
    file.write_text(from_archive(tmp_path, 'patches = ["fix.patch"]'), encoding="utf-8")
    done = torchyard("build", PACKAGE, "-f", file, "-o", tmp_path / "dist")
    assert done.code == 0, done.err
    (wheel,) = (tmp_path / "dist").rglob("*.whl")
    again = torchyard("rebuild", wheel, "-f", file, "--yes")
    assert again.code == 0, again.err
