"""What git is asked runs no program that a foreign checkout or repository names."""

import subprocess
from pathlib import Path

import pytest

from torchyard.errors import HostError
from torchyard.host.git import find_top, head_message, is_checkout, visible_paths
from torchyard.host.snapshot import SUBMODULES, check_out

SIGNED = """\
tree {tree}
author a <a@example.org> 0 +0000
committer a <a@example.org> 0 +0000
gpgsig -----BEGIN PGP SIGNATURE-----
 aaaa
 -----END PGP SIGNATURE-----

signed
"""


def git(folder: Path, *words: object, text: str | None = None) -> str:
    own = ("user.name=a", "user.email=a@example.org", "protocol.file.allow=always")
    argv = ["git", *(word for one in own for word in ("-c", one)), *map(str, words)]
    done = subprocess.run(argv, cwd=folder, check=True, capture_output=True, text=True, input=text)
    return done.stdout.strip()


def make_repository(folder: Path) -> str:
    folder.mkdir()
    (folder / "code.c").write_text("int x;\n", encoding="utf-8")
    git(folder, "init", "-q")
    return commit_all(folder)


def commit_all(folder: Path) -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "all")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    """The file that the program of a hostile checkout makes."""
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\nfalse\n", encoding="utf-8")
    program.chmod(0o755)
    return tmp_path / "ran"


def test_a_repository_that_git_does_not_trust_is_told_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container whose user is not the owner of the checkout; "no repository" was wrong."""
    make_repository(tmp_path / "checkout")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(HostError, match="dubious ownership"):
        find_top(str(tmp_path / "checkout"))


def test_a_signature_is_not_verified_by_a_program_of_the_checkout(
    tmp_path: Path, ran: Path
) -> None:
    checkout = tmp_path / "checkout"
    make_repository(checkout)
    text = SIGNED.format(tree=git(checkout, "write-tree"))
    commit = git(checkout, "hash-object", "-t", "commit", "-w", "--stdin", text=text)
    git(checkout, "update-ref", "HEAD", commit)
    git(checkout, "config", "log.showSignature", "true")
    git(checkout, "config", "gpg.program", tmp_path / "program")
    git(checkout, "log", "-1")
    assert ran.exists()  # git alone does run it
    ran.unlink()
    assert head_message(checkout).strip() == "signed"
    assert not ran.exists()


def test_no_object_is_fetched_by_a_program_of_the_checkout(tmp_path: Path, ran: Path) -> None:
    checkout = tmp_path / "checkout"
    commit = make_repository(checkout)
    (checkout / f".git/objects/{commit[:2]}/{commit[2:]}").unlink()
    settings = {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.url": tmp_path,
        "remote.origin.promisor": "true",
        "remote.origin.uploadPack": tmp_path / "program",
    }
    for name, value in settings.items():
        git(checkout, "config", name, value)
    with pytest.raises(subprocess.CalledProcessError):
        git(checkout, "log", "-1")
    assert ran.exists()
    ran.unlink()
    with pytest.raises(HostError):
        head_message(checkout)
    assert visible_paths(str(checkout)) == frozenset({"code.c"})
    assert not ran.exists()


def test_a_git_directory_without_a_head_makes_no_checkout(tmp_path: Path) -> None:
    """Containers mount an empty one over the real one; git itself looks further up."""
    (tmp_path / ".git").mkdir()
    assert not is_checkout(tmp_path)
    assert visible_paths(str(tmp_path)) is None
    make_repository(tmp_path / "real")
    assert is_checkout(tmp_path / "real")
    (tmp_path / "real/inner/.git").mkdir(parents=True)
    (tmp_path / "real/inner/new.c").touch()
    assert visible_paths(str(tmp_path / "real/inner")) == frozenset({"new.c"})
    git(tmp_path / "real", "worktree", "add", "--quiet", tmp_path / "worktree")
    assert is_checkout(tmp_path / "worktree")


def test_the_list_of_submodules_is_written_through_no_link_of_a_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was: any file of the user got a line whose end was the path of a submodule."""
    for name, value in {"COUNT": "1", "KEY_0": "protocol.file.allow", "VALUE_0": "always"}.items():
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    inner = make_repository(tmp_path / "inner")
    make_repository(tmp_path / "outer")
    git(tmp_path / "outer", "submodule", "--quiet", "add", tmp_path / "inner", r"a;b\n 'c")
    profile = tmp_path / "profile"
    profile.write_text("mine\n", encoding="utf-8")
    (tmp_path / "outer" / SUBMODULES).symlink_to(profile)
    commit = commit_all(tmp_path / "outer")
    check_out(str(tmp_path / "outer"), commit, tmp_path / "out", submodules=True)
    assert profile.read_text("utf-8") == "mine\n"
    assert (tmp_path / "out" / SUBMODULES).read_text("utf-8") == f"{inner} a;b\\n 'c\n"
