"""Faults of conda packages, each made in a package of rattler-build: `test_conda_faults.py`."""

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from tests.mutations.feedstock import PYTHON, SITE, SUFFIX
from tests.mutations.mutation import PATHS, Break, Link, Mutation, conda_edited, conda_members
from tests.mutations.texts import ABI, LICENSE, conda_renamed, with_depends, with_index

RUN_EXPORTS = "info/run_exports.json"
TESTS = "info/tests/tests.yaml"
LOST: dict[str, str | int] = {
    "_path": "lib/lost.so",
    "path_type": "hardlink",
    "sha256": "0" * 64,
    "size_in_bytes": 1,
}

_Row = dict[str, str | int]


def listing(change: Callable[[list[_Row]], object]) -> Break:
    """Change the list of files."""

    def make(good: Path, folder: Path) -> Path:
        listed = json.loads(conda_members(good)[PATHS])
        change(listed["paths"])
        return conda_edited({PATHS: json.dumps(listed).encode()})(good, folder)

    return make


def row(file: str, field: str, value: Callable[[str], str]) -> Break:
    """Change a field of a file's row."""

    def change(rows: list[_Row]) -> None:
        (found,) = (row for row in rows if row["_path"] == file)
        found[field] = value(str(found[field]))

    return listing(change)


def adding(file: str, content: bytes, instead_of: str = "") -> Break:
    """Add a file to package and list; with `instead_of`, another one is renamed to it."""

    def make(good: Path, folder: Path) -> Path:
        members = conda_members(good)
        new, listed = members.get(instead_of, content), json.loads(members[PATHS])
        row: _Row = {"_path": file, "path_type": "hardlink", "size_in_bytes": len(new)}
        row["sha256"] = sha256(new).hexdigest()
        if isinstance(content, Link):
            row["path_type"] = "softlink"
        rows = [row, *(row for row in listed["paths"] if row["_path"] != instead_of)]
        listed["paths"] = sorted(rows, key=lambda row: str(row["_path"]))
        edits = {file: new, instead_of: None, PATHS: json.dumps(listed).encode()}
        return conda_edited(edits)(good, folder)

    return make


def extending(file: str, text: str) -> Break:
    """Add a line to a file."""
    return lambda good, folder: conda_edited(
        {file: conda_members(good)[file] + f"{text}\n".encode()}
    )(good, folder)


def _python(name: str, make: Break, rule: str = "conda-python", good: str = "pymodule") -> Mutation:
    return Mutation(name, good, rule, make)


_MODULE = f"{SITE}/pymodule/pymodule{SUFFIX}"
_OLD_CACHE = f"{SITE}/pyonly/__pycache__/__init__.cpython-39.pyc"

FAULTS = [
    _python("another Python required", with_depends({"python": "3.9.*", ABI: None})),
    _python("no Python required", with_depends({"python": None, ABI: None})),
    _python("newer Pythons admitted", with_depends({"python": f">={PYTHON}", ABI: None})),
    _python("bytecode of another Python", adding(_OLD_CACHE, b"old"), good="pyonly"),
    _python(
        "module of another Python",
        adding(f"{SITE}/pymodule/pymodule.cpython-39-x86_64-linux-gnu.so", b"", _MODULE),
        "label-python",
    ),
    Mutation(
        "prefix that installers do not know",
        "demo-data",
        "leaked-prefix",
        adding("share/demo/demo.cmake", b'set(DEMO "/opt/b/_h_env_placehold_placehold/lib")\n'),
    ),
    Mutation(
        "place for a short prefix",
        "demo-paths",
        "conda-prefix",
        row("bin/demo-paths", "prefix_placeholder", lambda prefix: prefix[:80]),
    ),
    Mutation(
        "prefix that is not in the file",
        "libdemo-devel",
        "conda-prefix",
        conda_edited({"lib/pkgconfig/demo.pc": b"prefix=${pcfiledir}/../..\n"}),
    ),
    Mutation(
        "activation with a path of the build machine",
        "demo_linux-64",
        "leaked-path",
        extending("etc/conda/activate.d/demo.sh", "export DEMO_SRC=/root/work/demo"),
    ),
    Mutation(
        "pkg-config with a path of the build machine",
        "libdemo-devel",
        "leaked-path",
        extending("lib/pkgconfig/demo.pc", "Cflags: -I/root/work/demo/include"),
    ),
    Mutation("zlib undeclared", "libzdemo", "conda-runtime", with_depends({"libzlib": None})),
    Mutation(
        "OpenBLAS undeclared",
        "libblasdemo",
        "linking-undeclared",
        with_depends({"libopenblas": None}),
    ),
    Mutation(
        "MKL required for nothing",
        "libplain",
        "conda-overdepending",
        with_depends({"mkl": ">=2024.2,<2025.0a0"}),
    ),
    Mutation("license not named", "libdemo", "conda-license", with_index("license", "")),
    Mutation("license without its text", "libdemo", "conda-license", conda_edited({LICENSE: None})),
    Mutation("any driver", "demo-gpu", "conda-driver", with_depends({"__cuda": ""})),
    Mutation(
        "noarch with a library",
        "libdemo",
        "label-any",
        with_index("subdir", "noarch"),
    ),
    Mutation(
        "noarch for one Python",
        "pynoarch",
        "conda-noarch",
        adding(f"{SITE}/pynoarch/more.py", b"x = 1\n"),
    ),
    Mutation(
        "noarch: python without one", "pynoarch", "conda-noarch", with_depends({"python": None})
    ),
    Mutation("list not sorted", "libdemo-devel", "conda-paths", listing(list.reverse)),
    Mutation("list with a lost file", "libdemo", "conda-paths", listing(lambda r: r.append(LOST))),
    Mutation(
        "another digest",
        "libdemo",
        "conda-paths",
        row("lib/libdemo.so.1", "sha256", lambda _: "0" * 64),
    ),
    Mutation("file not listed", "libdemo", "conda-paths", conda_edited({"share/more.txt": b"x"})),
    Mutation(
        "link out of the prefix",
        "demo-links",
        "archive-names",
        adding("share/links/out", Link(b"../../../etc/passwd")),
    ),
    Mutation(
        "link to nothing",
        "demo-links",
        "conda-links",
        adding("share/links/lost", Link(b"lost.txt")),
    ),
    Mutation(
        "names that differ in case",
        "demo-data",
        "archive-names",
        adding("share/demo/DATA.txt", b"x"),
    ),
    Mutation("no tests", "libdemo", "conda-tests", conda_edited({TESTS: b"[]\n"})),
    Mutation(
        "run export without a version",
        "libdemo",
        "conda-run-exports",
        conda_edited({RUN_EXPORTS: b'{"weak": ["libdemo"]}'}),
    ),
    Mutation(
        "upper-case name",
        "libdemo",
        "conda-index",
        with_index("name", "LibDemo", "libdemo", "LibDemo"),
    ),
    Mutation(
        "requirement that can't be read",
        "libcxxdemo",
        "conda-index",
        with_depends({"libstdcxx": "=>12"}),
    ),
    Mutation(
        "older glibc promised",
        "demo-tool",
        "conda-glibc",
        with_depends({"__glibc": ">=2.17,<3.0.a0"}),
    ),
    Mutation("another subdir", "libdemo", "label-platform", with_index("subdir", "osx-arm64")),
    Mutation("renamed", "libdemo", "label-name", conda_renamed("1.2.0", "1.2.1")),
]
