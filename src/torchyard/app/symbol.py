"""Which files of a build or a package define a symbol, and which need it."""

from typing import TYPE_CHECKING

from torchyard.app.build_files import named_build, open_build, open_package
from torchyard.errors import SelectionError

if TYPE_CHECKING:
    from torchyard.reports.symbol.document import SymbolsDocument


def locate_symbol(
    name: str, what: str | None = None, *, file: str = "torchyard.toml", store: str | None = None
) -> "SymbolsDocument":
    """Find the files that define a symbol, and those that need it.

    Args:
        name: The symbol: mangled, demangled with or without parameters and scopes, or a glob.
        what: A build directory, a package, or a job; by default, the last one that runs or
            failed. Objects are looked at only in a build directory.
        file: The configuration that names the store.
        store: The store, if it is not the file's.
    """
    from torchyard.insight.build_links import BuildLinks
    from torchyard.insight.build_record import read_edges
    from torchyard.insight.symbols import (
        find_symbol,
        mention_of,
        symbols_in_files,
        symbols_in_package,
    )
    from torchyard.reports.symbol.document import symbols_document

    mention, what = mention_of(name), named_build(what, file)
    contents = open_package(what, file, store)
    if contents is not None:
        count = sum(one.binary is not None for one in contents.files.values())
        found = find_symbol(name, symbols_in_package(contents, mention))
    else:
        with open_build(what, file, store) as files:
            known = BuildLinks(read_edges(files.folder)).files()
            files.fetch(one for one in known if not one.endswith((".o", ".obj")))
            there = [one for one in known if (files.folder / one).is_file()]
            if known and not there:
                msg = f"`{what}` has none of the {len(known):,} files that are linked there"
                raise SelectionError(msg, hint="run ninja there first")
            count = len(there)
            found = find_symbol(name, symbols_in_files(files.folder, there, mention))
    if not found:
        msg = f"none of {count:,} files of {what} has a symbol `{name}`"
        raise SelectionError(msg, hint="a glob such as '*name*' finds more")
    return symbols_document(what, count, found)
