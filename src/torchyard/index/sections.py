"""The registry of channel sections: add a section as a `ChannelSection` class and a line here."""

from collections.abc import Iterator

from torchyard.errors import StoreError
from torchyard.index.conda.section import CondaSection
from torchyard.index.entry import Entry, cell_of
from torchyard.index.libtorch.section import LibtorchSection
from torchyard.index.section import ChannelSection, Fit
from torchyard.index.simple.section import SimpleSection
from torchyard.model.identifier import ANY_PYTHON

SECTIONS: dict[str, ChannelSection] = {
    SimpleSection.NAME: SimpleSection(),
    CondaSection.NAME: CondaSection(),
    LibtorchSection.NAME: LibtorchSection(),
}
"""In the order of the landing page."""


def section_of(part: str) -> ChannelSection:
    """Return the section of a part by its name, such as `simple/torch`."""
    found = SECTIONS.get(part.partition("/")[0])
    if found is None:
        msg = f"the channel has a part `{part}` of an unknown kind"
        raise StoreError(msg, hint="a newer torchyard wrote it: use that version")
    return found


def is_in_variants(part: str) -> bool:
    """Return whether each variant has its own index with this part."""
    found = SECTIONS.get(part.partition("/")[0])
    return found is not None and found.INDEX_PER_VARIANT


def section_for(format_name: str) -> ChannelSection:
    """Return the section that holds the packages of a format."""
    return next(section for section in SECTIONS.values() if format_name == section.FORMAT)


def fits_of(part: str, entry: Entry) -> Iterator[Fit]:
    """Yield the platforms and Pythons of a file: by its cell, else by its name."""
    cell = cell_of(entry)
    if cell is not None:
        yield Fit(cell.platform, "" if cell.python == ANY_PYTHON else cell.python)
    else:
        yield from section_of(part).fits(part.partition("/")[2], entry)


def section_called(package: str) -> ChannelSection:
    """Return the section by its name in `torchyard which`."""
    return next(section for section in SECTIONS.values() if package == section.PACKAGE)
