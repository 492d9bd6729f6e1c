"""Lay out trees for a conda prefix, from the results of core and bindings.

The core's libraries, headers and programs are in the prefix itself, once for all Pythons. The
Python package has links to them, because Python code and CMake files search them there.
No file in these trees contains its prefix, so installation changes no file.
"""

import os
import shutil
from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase
from hashlib import file_digest
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path
from typing import NamedTuple

from torchyard.errors import BuildError
from torchyard.host.files import link_or_copy
from torchyard.package.assemble.prepare import copy_tree
from torchyard.package.assemble.project import TESTS
from torchyard.package.wheel.dist_info import find_dist_info, record
from torchyard.package.zip.writer import Written

_SHARED = ("lib*.so", "lib*.so.*", "lib*.dylib")
_WHOLE = ("bin", "include", "share")
"""Folders of a Python package that link to the prefix's; `lib` has other files, too."""

_OF_INSTALLERS = ("direct_url.json", "REQUESTED")
"""Files of other installers, which do not apply to conda."""

_SCHEMES = {"purelib": "{site}", "platlib": "{site}", "data": ".", "scripts": "bin"}
"""The folders below the prefix for each folder of a wheel's `.data`."""

_START = """\
#!/bin/sh
'''exec' "$(dirname -- "$(realpath -- "$0")")/python" "$0" "$@"
' '''
"""
"""The head of a script, valid in shell and Python, which starts the interpreter beside it."""

_CALL = """\
import sys

from {module} import {top}

sys.exit({function}())
"""


class Core(NamedTuple):
    """The files of another package: an installed core, and the names of vendored libraries."""

    install: Path
    brought: Collection[str] = ()


def lay_out_libraries(core: Path, prefix: Path, *, without: str | None = None) -> None:
    """Lay out the core, without the library that matches a pattern."""
    copy_tree(core, prefix)
    if without is not None:
        for path in _matching(prefix / "lib", without):
            path.unlink()


def lay_out_linalg(folder: Path, prefix: Path, library: str) -> None:
    """Lay out only the plugin from a folder."""
    found = list(_matching(folder, library)) if folder.is_dir() else []
    if not found:
        msg = f"the core has no linalg plugin: no file {library} in its lib"
        raise BuildError(msg, hint="leave conda-linalg out, or build the core with its plugin")
    (prefix / "lib").mkdir(parents=True)
    for path in found:
        link_or_copy(str(path), str(prefix / "lib" / path.name))


def lay_out_tests(project: Path | None, prefix: Path, name: str) -> None:
    """Lay out the test suite of a project."""
    tests = project / TESTS if project else None
    if tests is None or not tests.is_dir():
        msg = f"{name} has no directory of tests for a package"
        raise BuildError(msg, hint="leave conda-tests out for this project")
    copy_tree(tests, prefix / "share" / name / "test")


def lay_out_package(image: Path, core: Core | None, prefix: Path, site: Path, package: str) -> None:
    """Lay out an unpacked wheel; link to files that the core also has.

    `site` is the prefix's site-packages folder, `package` is this package's folder in it.
    """
    copy_tree(image, site)
    if core is not None:
        _share_libraries(core, prefix, site / package)
        for folder in _WHOLE:
            _share_folder(core.install / folder, prefix, site / package / folder)
    info = find_dist_info(site)
    _place_data(info.with_suffix(".data"), prefix, site)
    for entry in Distribution.at(info).entry_points.select(group="console_scripts"):
        _write_script(prefix / "bin" / entry.name, entry)
    for other in _OF_INSTALLERS:
        (info / other).unlink(missing_ok=True)
    _replace_text(info / "INSTALLER", "conda\n")


def write_record(prefix: Path, site: Path) -> None:
    """Write RECORD; links have no digest, as their targets may be in another package."""
    path = find_dist_info(site) / "RECORD"
    path.unlink(missing_ok=True)
    rows = [_row(file, Path(os.path.relpath(file, site))) for file in sorted(files_of(prefix))]
    path.write_text(record(rows, path.relative_to(site).as_posix()), encoding="utf-8")


def _row(path: Path, name: Path) -> Written:
    if path.is_symlink():
        return Written(name.as_posix(), 0, b"")
    with path.open("rb") as file:
        return Written(name.as_posix(), path.stat().st_size, file_digest(file, "sha256").digest())


def files_of(folder: Path) -> Iterator[Path]:
    """Yield all files and links, without following links to folders."""
    for top, folders, names in os.walk(folder):
        here = Path(top)
        yield from (here / name for name in names)
        yield from (here / name for name in folders if (here / name).is_symlink())


def _share_libraries(core: Core, prefix: Path, package: Path) -> None:
    """Move every library to the prefix's `lib` once, and link to it from the package's.

    The bindings' own libraries go there, too, as C++ programs find them by the same CMake files.
    """
    folder = package / "lib"
    folder.mkdir(parents=True, exist_ok=True)
    shared = {path.name for path in _libraries(core.install / "lib")} | set(core.brought)
    for path in list(_libraries(folder)):
        if path.name not in shared:
            shutil.move(path, prefix / "lib" / path.name)
            shared.add(path.name)
    for library in sorted(shared):
        (folder / library).unlink(missing_ok=True)
        _link(folder / library, prefix / "lib" / library)


def _share_folder(ours: Path, prefix: Path, folder: Path) -> None:
    """Move files that only the bindings have into the prefix, and link to the whole folder."""
    if not ours.is_dir():
        return
    target = prefix / ours.name
    if folder.is_dir():
        for path in [path for path in folder.rglob("*") if path.is_symlink() or path.is_file()]:
            relative = path.relative_to(folder)
            if not os.path.lexists(ours / relative):
                (target / relative).parent.mkdir(parents=True, exist_ok=True)
                shutil.move(path, target / relative)
        shutil.rmtree(folder)
    _link(folder, target)


def _place_data(data: Path, prefix: Path, site: Path) -> None:
    """Install the parts of a wheel's `.data` to their folders."""
    if not data.is_dir():
        return
    for part in sorted(data.iterdir()):
        if part.name not in _SCHEMES:
            msg = f"the wheel has `{data.name}/{part.name}`, which conda can't install"
            raise BuildError(msg, hint=f"wheels may have {', '.join(_SCHEMES)} there")
        path = prefix / _SCHEMES[part.name].format(site=site.relative_to(prefix))
        if part.name == "scripts":
            for script in part.iterdir():
                _place_script(script, path / script.name)
        else:
            copy_tree(part, path)
    shutil.rmtree(data)


def _place_script(script: Path, path: Path) -> None:
    """Copy a program; replace a `#!python` line by the prefix's interpreter."""
    content = script.read_bytes()
    first, _, rest = content.partition(b"\n")
    ours = first.startswith(b"#!python")
    _write_program(path, _START.encode() + rest if ours else content, f"`{script}`")


def _write_script(path: Path, entry: EntryPoint) -> None:
    top = entry.attr.partition(".")[0]
    call = _CALL.format(module=entry.module, top=top, function=entry.attr)
    _write_program(path, (_START + call).encode(), f"the entry point `{entry.name}`")


def _write_program(path: Path, content: bytes, what: str) -> None:
    """Write a new file; never replace an existing one, which may be a hard link to an input."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError as error:
        msg = f"{what} would replace the existing `{path}`"
        raise BuildError(msg, hint="let only one of them be installed") from error
    path.chmod(0o755)


def _libraries(folder: Path) -> Iterator[Path]:
    for pattern in _SHARED:
        yield from folder.glob(pattern)


def _matching(folder: Path, pattern: str) -> Iterator[Path]:
    return (path for path in sorted(folder.iterdir()) if fnmatchcase(path.name, pattern))


def _link(link: Path, target: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(os.path.relpath(target, link.parent))


def _replace_text(path: Path, text: str) -> None:
    """Replace a file, which may be a hard link to an input."""
    path.unlink(missing_ok=True)
    path.write_text(text, encoding="utf-8")
