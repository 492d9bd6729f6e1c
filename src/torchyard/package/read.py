"""Reading a package in one pass: a wheel, a zip archive, or a conda package.

Nothing in a package makes this raise. What is wrong with the archive itself is among the contents'
`faults`; what its files mean is for others to judge.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from torchyard.errors import HostError, UsageError
from torchyard.package.contents import Contents, Kind
from torchyard.package.limits import LIMITS, Limits
from torchyard.package.members import Found
from torchyard.package.zip.inflate import Progress, nobody
from torchyard.package.zip.members import read_zip

_KINDS = {".whl": Kind.WHEEL, ".zip": Kind.ZIP, ".conda": Kind.CONDA, ".tar.bz2": Kind.CONDA}


def kind_of(name: str) -> Kind:
    """What sort of package a file is, by its name."""
    for ending, kind in _KINDS.items():
        if name.endswith(ending):
            return kind
    msg = f"`{name}` is no package: its name should end in {', '.join(_KINDS)}"
    raise UsageError(msg, hint="rename the file to what it is, or name another one")


def _reader(kind: Kind) -> Callable[[BinaryIO, str, Limits, Progress], Found]:
    if kind is not Kind.CONDA:
        return read_zip
    from torchyard.package.conda.read import read_conda  # noqa: PLC0415 - with two more libraries

    return read_conda


def read_package(path: Path, *, limits: Limits = LIMITS, progress: Progress = nobody) -> Contents:
    """Read all of a package. Raises only if there is no such file, or it can't be read."""
    if path.is_dir():
        msg = f"`{path}` is a directory, and no package"
        raise UsageError(msg, hint=f"name the packages in it, such as {path}/*.whl")
    kind = kind_of(path.name)
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            read = _reader(kind)
            found = read(file, path.name, limits, progress)
    except OSError as error:
        msg = f"`{path}` can't be read: {error.strerror}"
        raise HostError(msg, hint="check its name and your permissions") from error
    return Contents(
        file_name=path.name,
        kind=kind,
        size=size,
        files=found.files,
        texts=found.texts,
        faults=found.faults.all(),
    )
