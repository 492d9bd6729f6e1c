"""Patches are applied as they are, or say which hunk does not fit."""

import subprocess
from pathlib import Path

import pytest

from torchyard.errors import BuildError
from torchyard.host.patches import apply_patches
from torchyard.host.snapshot import EPOCH

BEFORE = "".join(f"line {number}\n" for number in range(1, 21))

FIRST = """\
Say that this line is the second one.

--- a/code/a.txt
+++ b/code/a.txt
@@ -1,4 +1,4 @@
 line 1
-line 2
+line two
 line 3
 line 4
@@ -17,4 +17,4 @@ the end
 line 17
 line 18
-line 19
+line nineteen
 line 20
"""

SECOND = """\
diff --git a/code/a.txt b/code/a.txt
--- a/code/a.txt
+++ b/code/a.txt
@@ -1,4 +1,4 @@
 line 1
-line two
+line II
 line 3
 line 4
diff --git a/run b/run
new file mode 100755
--- /dev/null
+++ b/run
@@ -0,0 +1 @@
+#!/bin/sh
"""

OUTSIDE = """\
--- a/../../evil
+++ b/../../evil
@@ -0,0 +1 @@
+evil
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "source/code").mkdir(parents=True)
    (tmp_path / "source/code/a.txt").write_text(BEFORE, encoding="utf-8")
    return tmp_path / "source"


def text_of(source: Path) -> str:
    return (source / "code/a.txt").read_text(encoding="utf-8")


def test_a_series_is_applied_in_its_order(source: Path) -> None:
    apply_patches({"b.patch": FIRST, "a.patch": SECOND}, ["b.patch", "a.patch"], source)
    assert text_of(source) == BEFORE.replace("line 2\n", "line II\n").replace("19", "nineteen")
    assert (source / "run").stat().st_mode & 0o111 == 0o111
    assert {path.stat().st_mtime for path in source.rglob("*")} == {EPOCH}


def test_a_repository_around_it_and_its_settings_change_nothing(source: Path) -> None:
    """In a directory of a repository, git would leave out the files that are above."""
    subprocess.run(["git", "init", "-q", source.parent], check=True)
    settings = ["apply.whitespace=error-all", "core.autocrlf=true"]
    for name, _, value in (setting.partition("=") for setting in settings):
        subprocess.run(["git", "-C", source.parent, "config", name, value], check=True)
    apply_patches({"a": FIRST.replace("two", "two  ")}, ["a"], source)
    assert "line two  \n" in text_of(source)


def test_a_patch_that_does_not_fit_names_its_hunk_and_changes_nothing(source: Path) -> None:
    changed = BEFORE.replace("line 18", "another line")
    (source / "code/a.txt").write_text(changed, encoding="utf-8")
    with pytest.raises(BuildError) as failed:
        apply_patches({"fixes/one.patch": FIRST}, ["fixes/one.patch"], source)
    assert str(failed.value) == (
        "the patch `fixes/one.patch` does not apply: code/a.txt lacks the lines of its hunk "
        "`@@ -17,4 +17,4 @@ the end` (line 11 of the patch)"
    )
    assert failed.value.diagnostics[0].hint is not None
    assert "git diff" in failed.value.diagnostics[0].hint
    assert text_of(source) == changed


def test_a_patch_that_the_source_has_already_is_told(source: Path) -> None:
    apply_patches({"a": FIRST}, ["a"], source)
    with pytest.raises(BuildError, match="the source has this change already"):
        apply_patches({"a": FIRST}, ["a"], source)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("no patch at all\n", "No valid patches in input"),
        (FIRST.replace("a.txt", "b.txt"), "code/b.txt: No such file or directory"),
        (OUTSIDE, "invalid path '../../evil'"),
    ],
)
def test_what_is_no_patch_of_this_source_is_refused(source: Path, text: str, why: str) -> None:
    with pytest.raises(BuildError, match="the patch `p` does not apply: ") as failed:
        apply_patches({"p": text}, ["p"], source)
    assert why in str(failed.value)
    assert not list(source.parent.rglob("evil"))


def test_a_patch_does_not_follow_links(source: Path) -> None:
    (source.parent / "outside").mkdir()
    (source / "link").symlink_to("../outside")
    new = "--- /dev/null\n+++ b/link/evil\n@@ -0,0 +1 @@\n+evil\n"
    with pytest.raises(BuildError, match="beyond a symbolic link"):
        apply_patches({"p": new}, ["p"], source)
    assert not list((source.parent / "outside").iterdir())
