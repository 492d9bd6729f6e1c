"""Read the symbols of torch from its wheels."""

from torchyard.checks.compat.table import torch_libraries
from torchyard.checks.compat.toolkits import library_toolkits, required_toolkits
from torchyard.checks.torch_symbols import TorchSymbols, packed_digests, symbol_digest
from torchyard.package.contents import Contents
from torchyard.package.elf.symbols import split_names
from torchyard.package.wheel.metadata import fields_of, values
from torchyard.package.wheel.parts import WheelParts


def read_torch(wheel: WheelParts, version: str) -> TorchSymbols:
    """Read the symbols of a torch wheel; of its largest libraries, only the needed parts."""
    members = torch_libraries(wheel.libraries())
    needed: list[str] = []
    digests: set[int] = set()
    for member in members:
        binary = wheel.binary(member) if wheel.is_small(member) else None
        needed += binary.needed if binary else ()
        exported = split_names(binary.exports) if binary else wheel.exports(member)
        digests.update(map(symbol_digest, exported))
    required = values(fields_of(wheel.metadata), "Requires-Dist")
    return TorchSymbols(
        file=wheel.name,
        version=version,
        libraries=tuple(sorted(member.rpartition("/")[2] for member in members)),
        toolkits=tuple(sorted(library_toolkits(needed) or required_toolkits(required))),
        digests=packed_digests(digests),
    )


def torch_in(contents: Contents, version: str) -> TorchSymbols:
    """Return the symbols of a read torch wheel."""
    files = contents.files
    members = {name: b for name in torch_libraries(files) if (b := files[name].binary)}
    needed = (library for binary in members.values() for library in binary.needed)
    exported = (name for binary in members.values() for name in split_names(binary.exports))
    return TorchSymbols(
        file=contents.file_name,
        version=version,
        libraries=tuple(sorted(member.rpartition("/")[2] for member in members)),
        toolkits=tuple(sorted(library_toolkits(needed))),
        digests=packed_digests(map(symbol_digest, exported)),
    )
