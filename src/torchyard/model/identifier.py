"""The one grammar of identifiers, and its one parser.

A cell is a package that should exist; a job has its stage in front, and only the part of the
path that it depends on::

    torch-2.14.0/linux-x86_64/cu130-mkl/cp312/wheel
    package:torch-2.14.0/linux-x86_64/cu130-mkl/cp312/wheel
    bindings:torch-2.14.0/linux-x86_64/cu130-mkl/cp312
    core:torch-2.14.0/linux-x86_64/cu130-mkl
    source:torch-2.14.0
    publish:torch-2.14.0/nightly

A package that is the same for every Python has `any` as its Python.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from torchyard.errors import SelectionError
from torchyard.model.recipe import DEPTH, Stage

ANY_PYTHON = "any"

WORD = re.compile(r"[A-Za-z0-9_.]+")
"""Values of dimensions that are valid in an identifier."""

PROJECT_NAME = re.compile(r"[A-Za-z0-9]+(?:[-_.][A-Za-z0-9]+)*")
"""Names of projects in an index."""

_LABEL = r"[A-Za-z0-9_.]+(?:-[A-Za-z0-9_.]+)*?-[0-9][^-/:]*"


def fits_identifier(name: str) -> bool:
    """Return whether a name can be part of an identifier; unlike in a compute, `-` is allowed."""
    return WORD.fullmatch(name.replace("-", "_")) is not None


class Cell(NamedTuple):
    """A point of the matrix. `variant` is its BLAS, or the torch it is compiled against."""

    platform: str
    compute: str
    variant: str
    python: str
    package: str

    @property
    def path(self) -> str:
        return scope_path(self)

    @classmethod
    def from_path(cls, path: str) -> "Cell":
        """Return the cell of a path that :func:`parse` has already checked."""
        return cls(*scope_of(Stage.PACKAGE, path))


def job_series(identifier: str) -> str:
    """Return a job's identifier without its version: the same in every nightly."""
    stage, _, cell = identifier.partition(":")
    label, _, scope = cell.partition("/")
    return f"{stage}:{label.rpartition('-')[0]}-*/{scope}"


def scope_path(scope: Sequence[str]) -> str:
    """Return the first fields of a cell, or a channel's name, as a path."""
    if len(scope) < len(("platform", "compute", "variant")):
        return "/".join(scope)
    platform, compute, variant, *rest = scope
    return "/".join((platform, f"{compute}-{variant}", *rest))


def scope_of(stage: Stage, path: str) -> tuple[str, ...]:
    """Return the fields of a path that :func:`parse` has already checked."""
    if stage is Stage.PUBLISH or not path:
        return (path,) if path else ()
    platform, flavour, *rest = path.split("/")
    compute, _, variant = flavour.partition("-")
    return (platform, compute, variant, *rest)


class Identifier(NamedTuple):
    """A parsed identifier of a job, or of a cell if it has no stage."""

    stage: Stage | None
    label: str
    path: str

    def __str__(self) -> str:
        return job_identifier(self.stage, self.label, self.path)


def job_identifier(stage: Stage | None, label: str, path: str) -> str:
    """Return the identifier of a job, or of a cell if there is no stage."""
    cell = f"{label}/{path}" if path else label
    return f"{stage.value}:{cell}" if stage else cell


def parse(text: str) -> Identifier:
    """Parse the whole identifier of a cell or a job, or raise SelectionError."""
    prefix, colon, cell = text.rpartition(":")
    label, _, path = cell.partition("/")
    parts = path.split("/") if path else []
    stage = Stage(prefix) if prefix in list(Stage) else None
    depth = 2 if stage is Stage.PUBLISH else DEPTH[stage or Stage.PACKAGE]
    is_known = bool(stage) == bool(colon) and re.fullmatch(_LABEL, label) is not None
    has_parts = len(parts) == max(0, depth - 1) and all(parts)
    if not is_known or not has_parts or not all("-" in part for part in parts[1:2]):
        msg = f"`{text}` is not the identifier of a cell or a job"
        raise SelectionError(msg, hint="`torchyard plan --list jobs` lists them")
    return Identifier(stage, label, path)
