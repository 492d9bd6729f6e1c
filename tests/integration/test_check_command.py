"""`check`, `diff` and `explain rule` with packages that a compiler and zip have made."""

import hashlib
import json
import os
import pty
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.support.helpers import Command
from tests.support.schemas import validate

from torchyard.checks.registry import INDEX_RULES, RULES
from torchyard.package.wheel.dist_info import record
from torchyard.package.zip.writer import Written

pytestmark = pytest.mark.integration

SOURCE = """
#include <cstdio>
namespace small {{ int add(int a, int b) {{ return a + b; }} }}
extern "C" int small_{name}() {{ return std::puts("small"); }}
"""
MODULE = """
extern "C" int small_one();
extern "C" void *PyInit__C() { static int x = small_one(); return &x; }
"""
TAG = "cp312-cp312-linux_x86_64"


def compile_library(target: Path, source: str, *flags: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    command = ["g++", "-shared", "-fPIC", "-O1", "-x", "c++", "-", "-x", "none", *flags]
    common = ("-Wl,--build-id", "-Wl,--enable-new-dtags", "-o", str(target))
    subprocess.run([*command, *common], input=source, text=True, check=True)


def make_wheel(folder: Path, version: str, name: str = "one", runpath: str = "$ORIGIN/lib") -> Path:
    """A wheel with a library and a module that needs it."""
    image = folder / version
    library = image / "small/lib/libsmall.so"
    compile_library(library, SOURCE.format(name=name), "-Wl,-soname,libsmall.so")
    module = image / "small/_C.cpython-312-x86_64-linux-gnu.so"
    (folder / "stub").mkdir(exist_ok=True)
    compile_library(folder / "stub/libsmall.so", SOURCE.format(name="one"))
    flags = (f"-L{folder}/stub", "-lsmall", f"-Wl,-rpath,{runpath}")
    compile_library(module, MODULE, *flags)
    (image / "small/__init__.py").write_text("from small import _C\n", encoding="utf-8")
    about = image / f"small-{version}.dist-info"
    about.mkdir()
    metadata = f"Metadata-Version: 2.4\nName: small\nVersion: {version}\n"
    (about / "METADATA").write_text(metadata, encoding="utf-8")
    wheel = f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: {TAG}\n"
    (about / "WHEEL").write_text(wheel, encoding="utf-8")
    files = sorted(path for path in image.rglob("*") if path.is_file())
    rows = [
        Written(
            str(path.relative_to(image)),
            path.stat().st_size,
            hashlib.sha256(path.read_bytes()).digest(),
        )
        for path in files
    ]
    own = about / "RECORD"
    own.write_text(record(rows, str(own.relative_to(image))), encoding="utf-8")
    package = folder / f"small-{version}-{TAG}.whl"
    with zipfile.ZipFile(package, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in (*files, own):
            archive.write(path, path.relative_to(image))
    return package


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("packages")


@pytest.fixture(scope="module")
def good(folder: Path) -> Path:
    return make_wheel(folder, "1.0")


@pytest.fixture(scope="module")
def renamed(folder: Path) -> Path:
    """A wheel whose library has lost a function, and with it what its own module needs."""
    return make_wheel(folder, "2.0", name="two")


@pytest.fixture(scope="module")
def astray(folder: Path) -> Path:
    """A wheel whose module looks for its library in the wrong folder."""
    return make_wheel(folder, "3.0", runpath="$ORIGIN/elsewhere")


def test_a_good_package_passes(torchyard: Command, good: Path) -> None:
    result = torchyard("check", good)
    assert result.code == 0, result.out
    assert result.out.splitlines()[0] == good.name
    assert result.out.splitlines()[-1].startswith("passed: ")
    assert result.err == ""


def test_errors_end_with_their_own_code(torchyard: Command, astray: Path, good: Path) -> None:
    result = torchyard("check", good, astray)
    assert result.code == 13
    assert "error linking-environment" in result.out
    assert result.out.splitlines()[-1].startswith("failed: ")
    assert result.out.splitlines()[-1].endswith("in 1 of 2 packages")
    assert f"errors were found in {astray.name}\n" in result.err
    assert "explain rule linking-environment" in result.err


def test_json_says_the_same(torchyard: Command, astray: Path) -> None:
    result = torchyard("check", astray, "--json")
    assert result.code == 13
    document = json.loads(result.out)
    validate(document, "check")
    (package,) = document["packages"]
    assert document["findings"]["error"] == 1
    assert [f["rule"] for f in package["findings"] if f["severity"] == "error"] == [
        "linking-environment"
    ]
    library = next(one for one in package["libraries"] if one["soname"] == "libsmall.so")
    assert library["exports"] >= 2
    assert len(library["sha256"]) == 64
    assert package["outside"]["libc.so.6"] == "system"


def test_only_some_rules(torchyard: Command, astray: Path) -> None:
    result = torchyard("check", astray, "--rule", "archive-*", "--rule", "record*")
    assert result.code == 0
    assert result.out.splitlines()[-1] == f"passed: nothing found in {astray.name}"
    result = torchyard("check", astray, "--rule", "linking-environments")
    assert result.code == 5
    assert "did you mean `linking-environment`?" in result.err


def test_a_rule_that_is_asked_for_runs_though_the_policy_has_it_off(
    torchyard: Command, astray: Path, tmp_path: Path
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('[severity]\nlinking-environment = "off"\n', encoding="utf-8")
    assert torchyard("check", astray, "--policy", policy).code == 0
    result = torchyard("check", astray, "--policy", policy, "--rule", "linking-env*")
    assert result.code == 13
    assert "error linking-environment" in result.out


def test_two_policies_are_one_too_many(torchyard: Command, astray: Path) -> None:
    result = torchyard("check", astray, "--policy", "pypi", "--policy", "strict")
    assert result.code == 2
    assert "only one policy, not pypi and strict" in result.err
    assert 'base = "pypi"' in result.err


def test_a_policy_lets_known_things_pass(torchyard: Command, astray: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(
        '[[allow]]\nrule = "linking-environment"\nreason = "for the test"\nuntil = 2999-12-31\n',
        encoding="utf-8",
    )
    result = torchyard("check", astray, "--policy", policy)
    assert result.code == 0
    assert "note linking-environment" in result.out
    assert "allowed: for the test" in result.out


def test_the_page_is_written_again(torchyard: Command, astray: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text("of yesterday", encoding="utf-8")
    assert torchyard("check", astray, "--html", page).code == 13
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "✗ failed" in text
    assert "libsmall.so" in text


def test_a_terminal_sees_no_rest_of_the_progress(good: Path) -> None:
    own, other = pty.openpty()
    command = [sys.executable, "-m", "torchyard", "check", str(good)]
    done = subprocess.run(command, stderr=other, stdout=subprocess.PIPE, check=True)
    os.close(other)
    assert b"passed" in done.stdout
    try:
        said = os.read(own, 4096)
    except OSError:  # nothing was said
        said = b""
    os.close(own)
    assert said in (b"", b"\r\x1b[K") or said.endswith(b"\r\x1b[K")


def test_diff_names_what_changed(torchyard: Command, good: Path, renamed: Path) -> None:
    result = torchyard("diff", good, renamed)
    assert result.code == 0
    assert "- small_one" in result.out
    assert "+ small_two" in result.out
    assert "- 1.0" in result.out
    document = json.loads(torchyard("diff", good, renamed, "--json").out)
    validate(document, "diff")
    changed = {one["member"]: one for one in document["libraries"]}
    assert changed["small/lib/libsmall.so"]["exports"] == {
        "removed": ["small_one"],
        "added": ["small_two"],
    }


def test_diff_of_a_package_with_itself(torchyard: Command, good: Path) -> None:
    result = torchyard("diff", good, good)
    assert result.code == 0
    assert "are the same" in result.out


def test_a_file_that_is_no_archive_is_not_compared(
    torchyard: Command, good: Path, tmp_path: Path
) -> None:
    wheel = tmp_path / "foo-1.0-py3-none-any.whl"
    wheel.write_bytes(b"hello\n")
    result = torchyard("diff", good, wheel)
    assert result.code == 13
    assert result.out == ""
    assert f"`{wheel.name}` can't be compared: the archive has no end record" in result.err


def test_diff_lists_everything_if_asked(torchyard: Command, good: Path, renamed: Path) -> None:
    summary = torchyard("diff", good, renamed).out
    assert summary.splitlines()[-1] == "--all lists everything"
    assert "  - small_one (libsmall.so)" in summary
    listed = torchyard("diff", good, renamed, "--all").out
    assert "small/lib/libsmall.so\n  exports: 1 gone, 1 new\n    - small_one\n" in listed


def test_symbols_are_readable(torchyard: Command, good: Path, folder: Path) -> None:
    other = make_wheel(folder, "4.0")
    compile_library(folder / "plain.so", 'extern "C" int none() { return 0; }')
    replaced = folder / other.name.replace("4.0", "5.0")
    with zipfile.ZipFile(other) as source, zipfile.ZipFile(replaced, "w") as target:
        for info in source.infolist():
            content = source.read(info)
            if info.filename.endswith("libsmall.so"):
                content = (folder / "plain.so").read_bytes()
            target.writestr(info.filename, content)
    assert "- small::add(int, int)" in torchyard("diff", good, replaced).out


@pytest.mark.parametrize("args", [["check", "none.whl"], ["diff", "none.whl", "none.whl"]])
def test_a_package_that_is_not_there(torchyard: Command, args: list[str]) -> None:
    result = torchyard(*args)
    assert result.code == 7
    assert "none.whl" in result.err


@pytest.mark.parametrize("command", ["check", "smoke"])
def test_a_directory_is_no_package(torchyard: Command, tmp_path: Path, command: str) -> None:
    result = torchyard(command, tmp_path)
    assert result.code == 2
    assert f"`{tmp_path}` is a directory, not a package" in result.err
    assert f"name the packages in it, such as {tmp_path}/*.whl" in result.err


@pytest.mark.parametrize(
    ("word", "command"),
    [
        ("linking-orphan", "explain rule linking-orphan"),
        ("linking-orphans", "explain rule linking-orphan"),
        ("rules", "explain rule"),
    ],
)
def test_who_explains_a_rule_is_told_how(torchyard: Command, word: str, command: str) -> None:
    result = torchyard("explain", word)
    assert result.code == 5
    assert f"rules are explained by `torchyard {command}`" in result.err


def test_every_rule_is_explained(torchyard: Command) -> None:
    listed = torchyard("explain", "rule").out
    assert [line.split()[0] for line in listed.splitlines()[1:]] == list(RULES)
    for rule in RULES.values():
        page = torchyard("explain", "rule", rule.id).out
        assert page.startswith(f"{rule.id} ({rule.severities})\n{rule.reason}\n")
        assert f'rule = "{rule.id}"' in page
    document = json.loads(torchyard("explain", "rule", "--json").out)
    validate(document, "explain")
    assert [rule["id"] for rule in document["rules"]] == list(RULES)


def test_rules_are_listed_by_a_glob(torchyard: Command) -> None:
    listed = torchyard("explain", "rule", "index-*")
    assert [line.split()[0] for line in listed.out.splitlines()[1:]] == list(INDEX_RULES)
    document = json.loads(torchyard("explain", "rule", "index-hash-*", "--json").out)
    assert [one["id"] for one in document["rules"]] == ["index-hash-missing", "index-hash-wrong"]
    assert torchyard("explain", "rule", "nothing-*").code == 5


def test_rules_about_indexes_are_not_for_packages(torchyard: Command, good: Path) -> None:
    result = torchyard("check", good, "--rule", "index-*")
    assert result.code == 5
    assert "`--rule index-*` names no rule" in result.err


def test_a_rule_that_is_not_there(torchyard: Command) -> None:
    result = torchyard("explain", "rule", "linking-unresolve")
    assert result.code == 5
    assert "did you mean `linking-unresolved`?" in result.err
    assert torchyard("explain", "rule", "linking-orphan", "c").code == 2
