"""Mach-O and PE files, read by lief.

Names of symbols are as in C, without the leading underscore of macOS.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import lief

from torchyard.package.contents import Binary

_MACHINES = {"ARM64": "aarch64", "AMD64": "x86_64", "X86": "i686", "I386": "i686"}

lief.logging.disable()  # it logs everything on both streams


@contextmanager
def _damage() -> Iterator[None]:
    """Turn exceptions of lief into `ValueError`, as the file is damaged."""
    try:
        yield
    except ValueError:
        raise
    except Exception as error:
        msg = f"lief can't read it: {error}"
        raise ValueError(msg) from error


def read_macho(source: bytes | str, size: int, most: int) -> Binary:
    """Read a library or program of macOS; combine the parts of a universal one."""
    with _damage():
        parsed = lief.MachO.parse(source)
        slices = list(parsed) if parsed else []
        if not slices:
            msg = "lief can't read it"
            raise ValueError(msg)
        for part in slices:
            _check_macho(part, size)
        commands = [command for part in slices for command in part.commands]
        types = lief.MachO.LoadCommand.TYPE
        dylibs = [command for command in commands if isinstance(command, lief.MachO.DylibCommand)]
        rpaths = [path for part in slices for path in part.rpaths]
        exports = [symbol for part in slices for symbol in part.exported_symbols]
        imports = [symbol for part in slices for symbol in part.imported_symbols]
        sections: dict[str, int] = {}
        for part in slices:
            for section in part.sections:
                name = f"{section.segment_name},{_text(section.name)}"
                sections[name] = sections.get(name, 0) + section.size
        return Binary(
            format="mach-o",
            machine=",".join(dict.fromkeys(_machine(part.header.cpu_type) for part in slices)),
            soname=_first(item.name for item in dylibs if item.command == types.ID_DYLIB),
            needed=_once(item.name for item in dylibs if item.command != types.ID_DYLIB),
            rpath=":".join(_once(item.path for item in rpaths)),
            build_id=_first(bytes(part.uuid.uuid).hex() for part in slices if part.uuid),
            exports=_blob((_text(symbol.name).removeprefix("_") for symbol in exports), most),
            imports=_blob((_text(symbol.name).removeprefix("_") for symbol in imports), most),
            sections=sections,
            minimum_system=_oldest(slices),
        )


def _check_macho(part: lief.MachO.Binary, size: int) -> None:
    """Check that all parts are within the file, as lief ignores missing data."""
    if part.header.nb_cmds != len(part.commands) or not part.commands:
        msg = f"it has {len(part.commands)} of {part.header.nb_cmds} load commands"
        raise ValueError(msg)
    for segment in part.segments:
        if part.fat_offset + segment.file_offset + segment.file_size > size:
            msg = f"its segment {_text(segment.name)} is beyond its end"
            raise ValueError(msg)


def _oldest(slices: Iterable[lief.MachO.Binary]) -> str:
    versions = [part.build_version.minos for part in slices if part.build_version]
    versions += [part.version_min.version for part in slices if part.version_min]
    return ".".join(str(number) for number in min(versions)[:2]) if versions else ""


def read_pe(source: bytes | str, size: int, most: int) -> Binary:
    """Read a library or program of Windows."""
    with _damage():
        parsed = lief.PE.parse(source)
        if parsed is None:
            msg = "lief can't read it"
            raise ValueError(msg)
        for section in parsed.sections:
            if section.pointerto_raw_data + section.sizeof_raw_data > size:
                msg = f"its section {_text(section.name)} is beyond its end"
                raise ValueError(msg)
        export = parsed.get_export()
        imports = [*parsed.imports, *parsed.delay_imports]
        sections: dict[str, int] = {}
        for section in parsed.sections:
            name = _text(section.name)
            sections[name] = sections.get(name, 0) + section.sizeof_raw_data
        return Binary(
            format="pe",
            machine=_machine(parsed.header.machine),
            soname=_text(export.name) if export else "",
            needed=_once(item.name for item in imports),
            exports=_blob((entry.name for entry in export.entries) if export else (), most),
            imports=_blob((entry.name for item in imports for entry in item.entries), most),
            sections=sections,
        )


def _machine(kind: lief.MachO.Header.CPU_TYPE | lief.PE.Header.MACHINE_TYPES) -> str:
    name = str(kind).rpartition(".")[2]
    return _MACHINES.get(name, name.lower())


def _text(name: str | bytes) -> str:
    return name if isinstance(name, str) else name.decode(errors="backslashreplace")


def _once(names: Iterable[str | bytes]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_text(name) for name in names))


def _first(names: Iterable[str | bytes]) -> str:
    return next((_text(name) for name in names), "")


def _blob(names: Iterable[str | bytes], most: int) -> bytes:
    found = bytearray()
    for name in dict.fromkeys(_text(name) for name in names):
        if name:
            found += name.encode(errors="surrogateescape") + b"\0"
        if len(found) > most:
            msg = "the names of its symbols are too long"
            raise ValueError(msg)
    return bytes(found)
