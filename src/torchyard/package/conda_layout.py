"""Trees as conda installs them into a prefix, made from what the core and the bindings left.

The core's libraries, headers and programs are in the prefix itself, once for all Pythons. In the
Python package there are links to them, because Python code and CMake files look for them there.
Nothing in these trees knows its prefix, so no file has to be changed when it is installed.
"""

import csv
import os
import shutil
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from fnmatch import fnmatchcase
from hashlib import file_digest
from importlib.metadata import Distribution, EntryPoint
from io import StringIO
from pathlib import Path

from torchyard.errors import BuildError

_SHARED = ("lib*.so", "lib*.so.*", "lib*.dylib")
_WHOLE = ("bin", "include", "share")
"""Folders that a Python package has as links to those of the prefix; `lib` has too much beside."""

_OF_INSTALLERS = ("direct_url.json", "REQUESTED")
"""What another installer noted: it is not true of conda."""

_SCHEMES = {"purelib": "{site}", "platlib": "{site}", "data": ".", "scripts": "bin"}
"""Where the folders of a wheel's `.data` go, below the prefix."""

_START = """\
#!/bin/sh
'''exec' "$(dirname -- "$(realpath -- "$0")")/python" "$0" "$@"
' '''
"""
"""The head of a script, which is shell and Python: it finds the interpreter beside itself."""

_CALL = """\
import sys

from {module} import {top}

sys.exit({function}())
"""


def lay_out_libraries(core: Path, prefix: Path, *, without: str | None = None) -> None:
    """Lay out the core; a pattern tells which library is left out."""
    _copy_tree(core, prefix)
    if without is not None:
        for path in _matching(prefix / "lib", without):
            path.unlink()


def lay_out_linalg(folder: Path, prefix: Path, library: str) -> None:
    """Lay out nothing but the plugin, which is in a folder."""
    found = list(_matching(folder, library)) if folder.is_dir() else []
    if not found:
        msg = f"the core has no linalg plugin: no file {library} in its lib"
        raise BuildError(msg, hint="leave conda-linalg out, or build the core with its plugin")
    for path in found:
        _copy(path, prefix / "lib" / path.name)


def lay_out_tests(tests: Path | None, prefix: Path, name: str) -> None:
    """Lay out the test suite of a project."""
    if tests is None or not tests.is_dir():
        msg = f"{name} has no directory of tests to make a package of"
        raise BuildError(msg, hint="leave conda-tests out for this project")
    _copy_tree(tests, prefix / "share" / name / "test")


def lay_out_package(
    image: Path, core: Path | None, prefix: Path, *, name: str, python: str
) -> None:
    """Lay out an unpacked wheel; what the core has as well is linked, not repeated.

    `python` is the folder of the interpreter's library, such as `python3.12`.
    """
    site = prefix / "lib" / python / "site-packages"
    _copy_tree(image, site)
    if core is not None:
        _share_libraries(core, prefix, site / name)
        for folder in _WHOLE:
            _share_folder(core / folder, prefix, site / name / folder)
    info = dist_info(site)
    _place_data(info.with_suffix(".data"), prefix, site)
    for entry in Distribution.at(info).entry_points.select(group="console_scripts"):
        _write_script(prefix / "bin" / entry.name, entry)
    for other in _OF_INSTALLERS:
        (info / other).unlink(missing_ok=True)
    _replace_text(info / "INSTALLER", "conda\n")
    _replace_text(info / "RECORD", _record(prefix, site, info))


def dist_info(folder: Path) -> Path:
    """The one `.dist-info` of an unpacked wheel."""
    found = sorted(folder.glob("*.dist-info"))
    if len(found) != 1:
        msg = f"`{folder}` is no unpacked wheel: it has {len(found)} .dist-info folders, not one"
        raise BuildError(msg, hint="the bindings must leave the wheel's content in image/")
    return found[0]


def _share_libraries(core: Path, prefix: Path, package: Path) -> None:
    """Have every library once, in the prefix's `lib`, and link to it from the package's.

    The bindings' own go there, too, as C++ programs find them by the same CMake files.
    """
    folder = package / "lib"
    folder.mkdir(parents=True, exist_ok=True)
    shared = {path.name for path in _libraries(core / "lib")}
    for path in list(_libraries(folder)):
        if path.name not in shared:
            shutil.move(path, prefix / "lib" / path.name)
            shared.add(path.name)
    for library in sorted(shared):
        (folder / library).unlink(missing_ok=True)
        _link(folder / library, prefix / "lib" / library)


def _share_folder(ours: Path, prefix: Path, folder: Path) -> None:
    """Move what only the bindings have into the prefix, and link to the whole."""
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
    """Put the parts of a wheel's `.data` where they belong."""
    if not data.is_dir():
        return
    for part in sorted(data.iterdir()):
        if part.name not in _SCHEMES:
            msg = f"the wheel has `{data.name}/{part.name}`, for which conda has no place"
            raise BuildError(msg, hint=f"wheels may have {', '.join(_SCHEMES)} there")
        place = prefix / _SCHEMES[part.name].format(site=site.relative_to(prefix))
        if part.name == "scripts":
            for script in part.iterdir():
                _place_script(script, place / script.name)
        else:
            _copy_tree(part, place)
    shutil.rmtree(data)


def _place_script(script: Path, place: Path) -> None:
    """Copy a program; one that begins with `#!python` is to be run by the prefix's."""
    place.parent.mkdir(parents=True, exist_ok=True)
    first, _, rest = script.read_bytes().partition(b"\n")
    if first.startswith(b"#!python"):
        place.write_bytes(_START.encode() + rest)
    else:
        shutil.copy(script, place)
    place.chmod(0o755)


def _write_script(place: Path, entry: EntryPoint) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    top = entry.attr.partition(".")[0]
    call = _CALL.format(module=entry.module, top=top, function=entry.attr)
    place.write_text(_START + call, encoding="utf-8")
    place.chmod(0o755)


def _record(prefix: Path, site: Path, info: Path) -> str:
    """List what is installed; links have no digest, as their targets may be another package's."""
    rows = []
    for path in sorted(_files(prefix)):
        name = Path(os.path.relpath(path, site)).as_posix()
        if path == info / "RECORD":
            continue
        if path.is_symlink():
            rows.append((name, "", ""))
            continue
        with path.open("rb") as file:
            digest = urlsafe_b64encode(file_digest(file, "sha256").digest()).decode().rstrip("=")
        rows.append((name, f"sha256={digest}", str(path.stat().st_size)))
    rows.append(((info / "RECORD").relative_to(site).as_posix(), "", ""))
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _files(folder: Path) -> Iterator[Path]:
    """All files and links; no link to a folder is followed."""
    for top, folders, names in os.walk(folder):
        here = Path(top)
        yield from (here / name for name in names)
        yield from (here / name for name in folders if (here / name).is_symlink())


def _libraries(folder: Path) -> Iterator[Path]:
    for pattern in _SHARED:
        yield from folder.glob(pattern)


def _matching(folder: Path, pattern: str) -> Iterator[Path]:
    return (path for path in sorted(folder.iterdir()) if fnmatchcase(path.name, pattern))


def _link(link: Path, target: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(os.path.relpath(target, link.parent))


def _replace_text(path: Path, text: str) -> None:
    """Write a file anew; the old one may be the same file as one of the inputs."""
    path.unlink(missing_ok=True)
    path.write_text(text, encoding="utf-8")


def _copy_tree(source: Path, place: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, place, symlinks=True, copy_function=_copy, dirs_exist_ok=True)


def _copy(source: str | Path, place: str | Path) -> None:
    """Link a file into the tree, or copy it from another disk; no input is ever changed."""
    Path(place).parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, place, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, place, follow_symlinks=False)
