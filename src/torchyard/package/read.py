"""Read a package in one pass: a wheel, a zip archive, or a conda package.

Malformed packages never raise. Defects of the archive itself are listed in the contents' `faults`;
the rules check the meaning of its files.
"""

import os
from pathlib import Path

from torchyard.errors import HostError, UsageError
from torchyard.package.contents import Contents
from torchyard.package.formats import format_named, suffixes
from torchyard.package.limits import LIMITS, Limits
from torchyard.package.zip.inflate import Progress, ignore_progress


def read_package(
    path: Path, *, limits: Limits = LIMITS, progress: Progress = ignore_progress
) -> Contents:
    """Read a package completely; raise only if the file is missing or unreadable."""
    if path.is_dir():
        msg = f"`{path}` is a directory, not a package"
        raise UsageError(msg, hint=f"name the packages in it, such as {path}/*{suffixes()[0]}")
    form = format_named(path.name)
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            found = form.read(file, path.name, limits, progress)
    except OSError as error:
        msg = f"`{path}` can't be read: {error.strerror}"
        raise HostError(msg, hint="check its name and your permissions") from error
    return Contents(
        file_name=path.name,
        format=form.NAME,
        size=size,
        files=found.files,
        texts=found.texts,
        faults=found.faults.all(),
        oddities=tuple(found.oddities),
    )
