"""Check that the core in a wheel is the one built once, unchanged for any Python."""

import filecmp
from collections.abc import Sequence
from pathlib import Path

from torchyard.errors import BuildError
from torchyard.package.elf.file import read_elf, section_difference, symbol_difference
from torchyard.package.zip.writer import members_of

_LISTED = 5
"""The number of listed names; further ones are only counted."""


def check_core(core_install: Path, image_package: Path) -> None:
    """Fail unless each library of the core is in the Python package, byte for byte."""
    names = [member.name for member in members_of(core_install / "lib")]
    libraries = [name for name in names if read_elf(core_install / "lib" / name)]
    if not libraries:
        msg = f"the core has no libraries in `{core_install / 'lib'}`"
        raise BuildError(msg, hint="see in the log of the core's job what it installed")
    for name in libraries:
        library, other = core_install / "lib" / name, image_package / "lib" / name
        if not other.is_file():
            msg = f"the core's library `{name}` is not in `{image_package / 'lib'}`"
            hint = "the bindings must install the complete core unchanged"
            raise BuildError(msg, hint=hint)
        if not filecmp.cmp(library, other, shallow=False):
            msg = f"`{name}` of the bindings is not that of the core: {_why(library, other)}"
            hint = (
                "the bindings compiled or linked part of the core again; make them use it "
                "unchanged, and find what depends on the Python or the directory"
            )
            raise BuildError(msg, hint=hint)


def _why(core: Path, other: Path) -> str:
    """Return how two libraries differ: in symbols, else in sections."""
    gone, new = symbol_difference(core, other)
    if gone or new:
        parts = [f"lacks {_listing(gone)}" if gone else "", f"adds {_listing(new)}" if new else ""]
        return "it " + " and ".join(filter(None, parts))
    sections = section_difference(core, other)
    if sections:
        return f"the symbols are equal, but not the content of {_listing(sections)}"
    return "symbols and sections are equal, but not the data around them"


def _listing(names: Sequence[str]) -> str:
    listed = ", ".join(f"`{name}`" for name in names[:_LISTED])
    more = len(names) - _LISTED
    return f"{listed} and {more:,} more" if more > 0 else listed
