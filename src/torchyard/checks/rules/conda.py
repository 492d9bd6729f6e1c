"""Rules about the files of conda packages: their Pythons, libraries, licences and prefixes."""

import posixpath
import re
from bisect import bisect_left
from collections.abc import Iterator

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from torchyard.checks.expected import spec_in_package
from torchyard.checks.loader.companions import siblings_of
from torchyard.checks.rule import Hit, Severity, rule
from torchyard.checks.rules.linking import and_others
from torchyard.checks.subject import Subject
from torchyard.package.conda.index import (
    INDEX,
    conda_index,
    is_conda,
    prefix_placeholders,
)
from torchyard.package.conda.table import load_conda_table

_SITE = re.compile(r"lib/python(?P<version>3\.\d+)t?/site-packages/.")
_MODULE = re.compile(r"\.cpython-3\d+t?-")
_BYTECODE = re.compile(r"/__pycache__/[^/]+\.cpython-3(?P<minor>\d+)t?(?:\.opt-\d)?\.pyc\Z")
_PLACEHOLDER = re.compile(rb"[\w./-]+_placehold_[\w]*placehold[\w]*")
_LICENSES = "info/licenses/"
_TESTS = ("info/tests/", "info/test/")
_TESTS_LIST = "info/tests/tests.yaml"
_RECIPE = "info/recipe/rendered_recipe.yaml"
_PYTHON = ("python", "python-abi")
_LONG = 255
"""The length of the prefix in which packages are built."""

_PIN = "require the Python that it was built with"


@rule("conda-python", Severity.ERROR, "it would be installed where its files are not found")
def conda_python(subject: Subject) -> Iterator[Hit]:
    """A conda package's files are for another Python than its `depends` admit.

    Files in `lib/python3.11/site-packages` are seen by Python 3.11 only. If `depends` has no
    `python`, or one that admits others, solvers install the package beside any of them: `import`
    fails, or an extension module does not load. Bytecode of another Python is never read.

    Require the Python that it was built with: `python >=3.12,<3.13.0a0` and `python_abi 3.12.*`.
    Packages of pure Python for all versions are `noarch: python`.
    """
    index = conda_index(subject.contents)
    if index is None or index.name == "python":
        return
    specs = [rest for first, rest in map(_split, index.depends) if first == "python"]
    is_pinned = any(first == "python_abi" and rest for first, rest in map(_split, index.depends))
    for member in subject.contents.files:
        site, compiled = _SITE.match(member), _BYTECODE.search(member)
        if site and compiled and f"3.{compiled['minor']}" != site["version"]:
            what = (
                f"is bytecode of Python 3.{compiled['minor']}, in the folder of {site['version']}"
            )
            yield Hit(what, member, "compile it with the Python that the package is for")
    for version, member in _site_versions(subject).items():
        major, minor = map(int, version.split("."))
        stated = f"`depends` has `{f'python {specs[0]}'.strip()}`" if specs else ""
        if not specs and not is_pinned:
            yield Hit(f"is for Python {version}, but `depends` has no python", member, _PIN)
        elif specs and not all(_admits(spec, version) for spec in specs):
            yield Hit(f"is for Python {version}, but {stated}", member, _PIN)
        elif _MODULE.search(member) and not is_pinned:
            others = (f"{major}.{minor - 1}", f"{major}.{minor + 1}")
            if any(all(_admits(spec, other) for spec in specs) for other in others):
                yield Hit(f"is for Python {version} only, but {stated}", member, _PIN)


def _site_versions(subject: Subject) -> dict[str, str]:
    """Return the Python versions with files, and one file of each: a module, if there is any."""
    found: dict[str, str] = {}
    for name in sorted(subject.contents.files):
        match = _SITE.match(name)
        if match and (match["version"] not in found or _MODULE.search(name)):
            found[match["version"]] = name
    return found


def _split(depend: str) -> tuple[str, str]:
    name, _, rest = depend.partition(" ")
    return name, rest.strip()


def _admits(spec: str, version: str) -> bool:
    """Return whether a conda version spec admits a Python; also if it can't be read."""
    clauses = spec.partition(" ")[0]
    try:
        sets = [SpecifierSet(",".join(map(_clause, one.split(",")))) for one in clauses.split("|")]
    except InvalidSpecifier:
        return True
    patches = (f"{version}.{patch}" for patch in (0, 99))
    return any(one.contains(patch, prereleases=True) for patch in patches for one in sets)


def _clause(clause: str) -> str:
    """Translate `3.12.*`, `=3.12` and `3.12` to `==3.12.*`; other operators are Python's."""
    if clause in ("", "*"):
        return ""
    if clause[:1].isdecimal() or re.match(r"=[^=]", clause):
        return f"=={clause.lstrip('=').removesuffix('.*').removesuffix('*')}.*"
    return clause


@rule("conda-runtime", Severity.WARNING, "it works only beside others that bring the library")
def conda_runtime(subject: Subject) -> Iterator[Hit]:
    """A conda package needs a library of the compiler, or zlib, and does not require it.

    Programs in an environment use the environment's own libstdc++, libgcc and zlib. Solvers install
    those only if a package requires them, and in a version that is new enough only if it says so.
    `data/conda.toml` lists these libraries.

    Require the package, as conda-forge's compilers do by their run exports: `libstdcxx >=13`.
    """
    index = conda_index(subject.contents)
    if index is None:
        return
    names = {first for first, _ in map(_split, index.depends)} | {index.name}
    own = {name.rpartition("/")[2] for name in subject.contents.files}
    for row in load_conda_table().runtimes:
        users = [
            member
            for member, file in subject.contents.files.items()
            if file.binary is not None and row.soname in file.binary.needed
        ]
        if users and row.soname not in own and not names & {row.package, *row.aliases}:
            others = and_others(len(users) - 1)
            what = f"needs `{row.soname}`, but `depends` has no {row.package}{others}"
            yield Hit(what, users[0], f"require {row.package}")


@rule("conda-license", Severity.WARNING, "channels and companies refuse it, or have to ask")
def conda_license(subject: Subject) -> Iterator[Hit]:
    """A conda package does not say under which licence it may be used.

    `info/index.json` names the licence, and `info/licenses/` has its text; most licences demand
    that the text comes with compiled code. conda-forge requires both. Packages without files need
    no text.

    Set `license` and `license_file` in the recipe. torchyard takes both from the project, and the
    name from `license` in `[conda]` if the project has none.
    """
    index, files = conda_index(subject.contents), subject.contents.files
    if index is None:
        return
    if not index.license:
        yield Hit("names no license", INDEX, "name one, as an SPDX expression")
    if _installs(subject) and not any(name.startswith(_LICENSES) for name in files):
        yield Hit("has no text of its license", _LICENSES, "add the licence's file")


def _installs(subject: Subject) -> bool:
    return any(not name.startswith("info/") for name in subject.contents.files)


@rule("leaked-prefix", Severity.ERROR, "a path to the build environment, which exists nowhere else")
def leaked_prefix(subject: Subject) -> Iterator[Hit]:
    """A file contains the prefix it was built in, and installers do not know it.

    Build tools use a very long prefix, with `_placehold` at its end, and list the files that
    contain it in `info/paths.json`, so that installers write the real one into them. A file that is
    not listed keeps the path of the build machine.

    Build the package again without changing files after the prefix was looked for, or write paths
    relative to the file.
    """
    if not is_conda(subject.contents):
        return
    registered = prefix_placeholders(subject.contents)
    for member, text in subject.contents.texts.items():
        found = _PLACEHOLDER.search(text) if not member.startswith("info/") else None
        if found and member not in registered:
            what = f"contains {found[0][:60].decode(errors='replace')}…, which is not replaced"
            yield Hit(what, member, "write it relative to the file")


@rule("conda-prefix", Severity.WARNING, "it can't be installed everywhere", own=Severity.ERROR)
def prefix_placeholder(subject: Subject) -> Iterator[Hit]:
    """A file that contains the prefix it was built in can't be given another one.

    Installers replace the prefix that `info/paths.json` names. In a program or library, the new one
    must fit into the place of the old one, which build tools therefore make 255 characters long. If
    the file does not contain the prefix, it was changed after the build, or the list is wrong.

    Build the package again with a current tool, or make the file independent of its prefix.
    """
    for name, row in prefix_placeholders(subject.contents).items():
        placeholder, text = row.prefix_placeholder or "", subject.contents.texts.get(name)
        if row.file_mode == "binary" and len(placeholder) < _LONG:
            what = f"has place for a prefix of {len(placeholder)} characters, not {_LONG}"
            yield Hit(what, name, "build it in a longer prefix")
        elif text is not None and placeholder.encode() not in text:
            yield Hit("does not contain the prefix that is to be replaced", name)


@rule("conda-noarch", Severity.ERROR, "Python does not find the files")
def conda_noarch(subject: Subject) -> Iterator[Hit]:
    """Python files are not where a package of this kind has them.

    Installers move `site-packages/` of a `noarch: python` package to that of the environment's
    Python, and compile the files; so it needs a Python. Files in `lib/python3.12/site-packages` are
    for that version only, and nothing moves `site-packages/` of other packages.

    Build it with `noarch: python`, or for one Python.
    """
    index = conda_index(subject.contents)
    if index is None:
        return
    is_python = index.noarch == "python"
    versions = _site_versions(subject) if index.noarch else {}
    for version, member in versions.items():
        yield Hit(f"is for Python {version} only, in a package of noarch {index.noarch}", member)
    moved = [name for name in subject.contents.files if name.startswith("site-packages/")]
    if moved and not is_python:
        yield Hit("is in no Python's site-packages: the package is not noarch: python", moved[0])
    if is_python and not any(first == "python" for first, _ in map(_split, index.depends)):
        yield Hit("is noarch: python, but `depends` has no python", INDEX, "require python")


@rule("conda-links", Severity.ERROR, "a file that can't be opened")
def conda_links(subject: Subject) -> Iterator[Hit]:
    """A link leads to a file that neither the package nor one that it requires has.

    A link such as `libdemo.so` usually leads to `libdemo.so.1` of the same package. If it is in
    another package, this one must require that. Packages with requirements whose files are not
    known are not checked.

    Package the link's target, or require the package that has it.
    """
    siblings = siblings_of(subject)
    if not is_conda(subject.contents) or siblings.requirements.keys() - {*siblings.given, *_PYTHON}:
        return
    packages = (subject.contents, *subject.others)
    there = sorted(f"{name}/" for package in packages for name in package.files)
    for name, file in subject.contents.files.items():
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), file.link))
        found = bisect_left(there, f"{target}/")
        is_there = found < len(there) and there[found].startswith(f"{target}/")
        if file.link and not is_there and not target.startswith(("/", "..")) and target != ".":
            yield Hit(f"is a link to `{file.link}`, which no package has", name)


@rule("conda-tests", Severity.NOTE, "nobody can try the package once it is installed")
def conda_tests(subject: Subject) -> Iterator[Hit]:
    """A conda package contains no tests.

    Tests of a recipe are in the package, in `info/tests` or `info/test`; `torchyard smoke` runs
    them, and so does everyone who wants to know whether it works in an environment. Tests of
    package contents run while it is built, and are in its recipe only. Packages without files need
    none, nor do those of torchyard, which has tests for them.

    Write `tests` in the recipe.
    """
    contents, texts = subject.contents, subject.contents.texts
    if conda_index(contents) is None or not _installs(subject) or spec_in_package(contents):
        return
    listed = texts.get(_TESTS_LIST, b"").strip() not in (b"", b"[]")
    scripts = any(n.startswith(_TESTS) and n != _TESTS_LIST for n in contents.files)
    if not (listed or scripts or b"package_contents:" in texts.get(_RECIPE, b"")):
        yield Hit("has no tests", _TESTS_LIST, "write tests in the recipe")
