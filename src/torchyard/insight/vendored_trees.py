"""The third-party projects in a source tree: submodules, and folders of other people's code."""

import re
from collections.abc import Iterator
from pathlib import Path

from torchyard.host.snapshot import SUBMODULES
from torchyard.insight.build_links import THIRD_PARTY
from torchyard.package.sbom.component import Component, ComponentKind
from torchyard.package.sbom.license_text import license_of_texts
from torchyard.package.sbom.owner import project_licenses
from torchyard.package.sbom.purl import git_purl
from torchyard.toolchain.reading.source_text import read_beginning

_FOLDER = re.compile(THIRD_PARTY)
_PATH = re.compile(r"^\s*path\s*=\s*(\S+)\s*$", re.MULTILINE)
_URL = re.compile(r"^\s*url\s*=\s*(\S+)\s*$", re.MULTILINE)
_NUMBERS = r"v?(\d+(?:\.\d+)+)"
_VERSIONS = (
    ("VERSION", re.compile(rf"\A\s*{_NUMBERS}\s")),
    ("VERSION.txt", re.compile(rf"\A\s*{_NUMBERS}\s")),
    ("version.txt", re.compile(rf"\A\s*{_NUMBERS}\s")),
    ("CMakeLists.txt", re.compile(rf"\bproject\s*\([^)]*\bVERSION\s+{_NUMBERS}", re.IGNORECASE)),
)
"""Files in which projects state their versions."""
_SUFFIX = re.compile(rf"-{_NUMBERS}$")


def vendored_trees(source: Path) -> Iterator[Component]:
    """Yield the third-party projects in a source, by path; commits are those of its checkout."""
    rows = [line.partition(" ") for line in read_beginning(source / SUBMODULES).splitlines()]
    commits = {path.strip(): commit for commit, _, path in rows}
    addresses = _addresses(source, "")
    for path in commits:
        addresses |= _addresses(source / path, f"{path}/")
    tops = (top for top in source.iterdir() if _FOLDER.fullmatch(top.name) and top.is_dir())
    folders = {f"{top.name}/{one.name}" for top in tops for one in top.iterdir() if one.is_dir()}
    for path in sorted({*commits, *addresses, *folders}):
        if (source / path).is_dir():
            yield _component(source, path, commits.get(path, ""), addresses.get(path, ""))


def _addresses(tree: Path, prefix: str) -> dict[str, str]:
    """Return the addresses of a tree's submodules by their paths."""
    found = {}
    for section in read_beginning(tree / ".gitmodules").split("[submodule")[1:]:
        path, url = _PATH.search(section), _URL.search(section)
        if path and url and ".." not in path[1].split("/"):
            found[f"{prefix}{path[1]}"] = url[1]
    return found


def _component(source: Path, path: str, commit: str, address: str) -> Component:
    tree = source / path
    version = _version(tree)
    return Component(
        kind=ComponentKind.VENDORED,
        name=tree.name,
        version=version or commit,
        license=license_of_texts(project_licenses(tree)),
        purl=git_purl(address, commit or version, tree.name),
        path=path,
    )


def _version(tree: Path) -> str:
    """Return the version that a tree states in a file or in its name, or ""."""
    texts = ((pattern, read_beginning(tree / name)) for name, pattern in _VERSIONS)
    found = (pattern.search(f"{text}\n") for pattern, text in texts)
    match = next(filter(None, found), None) or _SUFFIX.search(tree.name)
    return match[1] if match else ""
