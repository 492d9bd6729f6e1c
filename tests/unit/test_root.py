"""A root is a toolchain: it is identified by its packages, and jobs and planning run in it."""

import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest
from tests.support.keys import FIND_KEY_C, add_session_key
from tests.support.roots import copy_program, make_debian

from torchyard.errors import ElsewhereError, HostError
from torchyard.host.system_view import own_paths, parts_of_root, system_view
from torchyard.toolchain.root import (
    answer_with,
    ask_in_root,
    check_root,
    identify_root,
    is_hidden_by,
    packages_in,
    run_in_root,
)

needs_bwrap = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")


def test_a_root_is_identified_by_its_packages(tmp_path: Path) -> None:
    one, same = make_debian(tmp_path / "one"), make_debian(tmp_path / "same")
    other = make_debian(tmp_path / "other", version="2.41-13")
    assert list(packages_in(one)) == ["gcc 4:14.2.0-1 amd64", "libc6 2.41-12 amd64"]
    assert identify_root(one).startswith("debian 13, 2 packages sha256:")
    assert identify_root(one) == identify_root(same)
    assert identify_root(one) != identify_root(other)


def test_pythons_that_are_no_packages_are_a_part_of_it(tmp_path: Path) -> None:
    root = make_debian(tmp_path / "root")
    before = identify_root(root)
    header = tmp_path / "root/opt/python/cp312-cp312/include/python3.12/patchlevel.h"
    header.parent.mkdir(parents=True)
    header.write_text('#define PY_VERSION  "3.12.4"\n', encoding="utf-8")
    assert list(packages_in(root))[-1] == "cp312-cp312 3.12.4"
    assert identify_root(root) != before


def test_links_of_a_root_lead_to_where_they_do_in_it(tmp_path: Path) -> None:
    """Those of manylinux's Pythons are absolute; for this machine they could lead to any file."""
    root = make_debian(tmp_path / "root")
    header = tmp_path / "root/opt/_internal/cpython/include/python3.12/patchlevel.h"
    header.parent.mkdir(parents=True)
    header.write_text('#define PY_VERSION  "3.12.4"\n', encoding="utf-8")
    (tmp_path / "root/opt/python").mkdir()
    (tmp_path / "root/opt/python/cp312-cp312").symlink_to("/opt/_internal/cpython")
    (tmp_path / "root/opt/python/cp39-cp39").symlink_to("../../../outside")
    (tmp_path / "root/opt/python/loop").symlink_to("loop")
    (tmp_path / "root/opt/python/cp310-cp310/include").mkdir(parents=True)
    outside = tmp_path / "outside/include/python3.9"
    (tmp_path / "root/opt/python/cp310-cp310/include/python3.10").symlink_to(outside)
    (tmp_path / "outside/include/python3.9").mkdir(parents=True)
    shutil.copy(header, tmp_path / "outside/include/python3.9")
    assert list(packages_in(root))[2:] == ["cp312-cp312 3.12.4"]
    before = identify_root(root)
    release = tmp_path / "root/etc/os-release"
    release.rename(tmp_path / "root/usr/os-release")
    release.symlink_to("/usr/os-release")
    assert identify_root(root) == before
    (tmp_path / "secret").write_text("ID=secret\n", encoding="utf-8")
    release.unlink()
    release.symlink_to(f"../{tmp_path}/secret")
    assert identify_root(root).startswith("linux, 3 packages")


def test_what_a_root_says_need_not_be_text(tmp_path: Path) -> None:
    root = make_debian(tmp_path / "root")
    with (tmp_path / "root/var/lib/dpkg/status").open("ab") as status:
        status.write(b"\n\nStatus: install ok installed\nPackage: \xff\n")
    assert list(packages_in(root))[-1] == "\ufffd  "


@needs_bwrap
def test_a_link_of_a_root_shows_no_directory_of_this_machine(tmp_path: Path) -> None:
    """Beside what is a toolkit there, its other files would be shown in its place."""
    (tmp_path / "home/cuda").mkdir(parents=True)
    (tmp_path / "home/key").write_text("secret", encoding="utf-8")
    make_debian(tmp_path / "root")
    (tmp_path / "root/usr/local").symlink_to(tmp_path / "home")
    shown = system_view(str(tmp_path / "root"), ["/usr/local/cuda"])
    assert not [word for word in shown if "home" in word or word.startswith("/usr/local")]
    (tmp_path / "root/usr/local").unlink()
    (tmp_path / "root/usr/local/cuda").mkdir(parents=True)
    (tmp_path / "root/usr/local/bin").mkdir()
    shown = system_view(str(tmp_path / "root"), ["/usr/local/cuda"])
    assert [word for word in shown if word.startswith("/usr/local/")] == ["/usr/local/bin"]


def test_a_root_of_nothing_known_has_no_identity(tmp_path: Path) -> None:
    (tmp_path / "usr").mkdir()
    with pytest.raises(HostError, match="it has no packages of dpkg or rpm"):
        identify_root(str(tmp_path))


def test_a_directory_that_is_no_system_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="is not a root: it has no /usr"):
        check_root(str(tmp_path))


def test_only_what_is_a_part_of_a_system_is_shown(tmp_path: Path) -> None:
    root = make_debian(tmp_path / "root")
    assert [path.name for path in parts_of_root(root)] == ["bin", "etc", "usr", "var"]
    assert is_hidden_by("/usr/lib/python3", root)
    assert not is_hidden_by("/home/me/.venv", root)


def test_errors_and_values_come_out_of_a_root() -> None:
    def fail() -> None:
        msg = "no network"
        raise ElsewhereError(msg, hint="later", reason="network")

    assert msgspec.json.decode(answer_with(lambda: {"a": "b"}))["value"] == {"a": "b"}
    said = msgspec.json.decode(answer_with(fail))
    assert (said["error"], said["what"]) == ("ElsewhereError", "no network")
    assert (said["hint"], said["reason"]) == ("later", "network")


@needs_bwrap
def test_a_program_runs_in_a_root_and_sees_nothing_else(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for program in ("bash", "ls", "cat"):
        copy_program(program, root)
    (root / "usr/only-here").touch()
    folder = tmp_path / "work"
    folder.mkdir()
    line = "ls / /usr; echo hello > made; cat made"
    said = run_in_root(str(root), ["/usr/bin/bash", "-c", line], folder=folder).split()
    assert "only-here" in said
    assert not {"home", "root", "run"} & set(said) - {Path(p).parts[1] for p in own_paths()}
    assert (folder / "made").read_text(encoding="utf-8") == "hello\n"


@needs_bwrap
def test_a_program_in_a_root_has_no_key_of_the_session(tmp_path: Path) -> None:
    source, program = tmp_path / "find_key.c", tmp_path / "root/usr/find-key"
    source.write_text(FIND_KEY_C, encoding="utf-8")
    program.parent.mkdir(parents=True)
    subprocess.run(["cc", "-static", source, "-o", program], check=True)
    add_session_key()
    if subprocess.run([program], check=False).returncode:
        pytest.skip("this system has no keyrings")
    with pytest.raises(HostError, match="exit code 1"):
        run_in_root(str(tmp_path / "root"), ["/usr/find-key"])


@needs_bwrap
def test_a_root_in_which_torchyard_does_not_run_is_refused_with_the_reason(tmp_path: Path) -> None:
    copy_program("bash", tmp_path / "root")
    with pytest.raises(
        HostError, match=r"torchyard does not run in the root|newer C library|hides"
    ):
        ask_in_root(str(tmp_path / "root"), ["survey", "{}"])
