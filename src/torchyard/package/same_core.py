"""The core of a wheel must be the one that was built once: no Python may have changed it."""

import filecmp
from collections.abc import Sequence
from pathlib import Path

from torchyard.errors import BuildError
from torchyard.package.elf import read_elf, section_difference, symbol_difference

_LISTED = 5
"""How many names are told before they are only counted."""


def check_core(core_install: Path, image_package: Path) -> None:
    """Fail unless each library of the core is in the Python package, byte for byte."""
    for library in sorted((core_install / "lib").iterdir()):
        if not library.is_file() or read_elf(library) is None:
            continue
        other = image_package / "lib" / library.name
        if not other.is_file():
            msg = f"the core's library `{library.name}` is not in `{other.parent}`"
            hint = "the bindings must install the core that they were given, all of it"
            raise BuildError(msg, hint=hint)
        if not filecmp.cmp(library, other, shallow=False):
            msg = (
                f"`{library.name}` of the bindings is not that of the core: {_why(library, other)}"
            )
            hint = (
                "something of the core was compiled or linked again; make the bindings take it as "
                "it is, and look for what depends on the Python or on the directory"
            )
            raise BuildError(msg, hint=hint)


def _why(core: Path, other: Path) -> str:
    """In what two libraries differ; if in symbols, these tell more than sections."""
    gone, new = symbol_difference(core, other)
    if gone or new:
        told = [f"lacks {_some(gone)}" if gone else "", f"adds {_some(new)}" if new else ""]
        return "it " + " and ".join(filter(None, told))
    sections = section_difference(core, other)
    if sections:
        return f"the symbols are the same, but not the content of {_some(sections)}"
    return "symbols and sections are the same, but not what is around them"


def _some(names: Sequence[str]) -> str:
    listed = ", ".join(f"`{name}`" for name in names[:_LISTED])
    more = len(names) - _LISTED
    return f"{listed} and {more:,} more" if more > 0 else listed
