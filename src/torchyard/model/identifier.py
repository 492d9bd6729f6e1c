"""The one grammar of identifiers, and its one parser.

A cell is a package that should exist; a job puts its stage in front and names only as much
of the path as the job is about::

    torch-2.14.0/linux-x86_64/cu130-mkl/cp312/wheel
    package:torch-2.14.0/linux-x86_64/cu130-mkl/cp312/wheel
    bindings:torch-2.14.0/linux-x86_64/cu130-mkl/cp312
    core:torch-2.14.0/linux-x86_64/cu130-mkl
    source:torch-2.14.0
    publish:torch-2.14.0/nightly

A package that is the same for every Python has `any` in Python's place.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from torchyard.errors import SelectionError
from torchyard.model.recipe import DEPTH, Stage
from torchyard.model.suggest import did_you_mean

ANY_PYTHON = "any"

WORD = re.compile(r"[A-Za-z0-9_.]+")
"""Values of dimensions that are valid in an identifier."""

PROJECT_NAME = re.compile(r"[A-Za-z0-9]+(?:[-_.][A-Za-z0-9]+)*")
"""Names of projects in an index."""

_LABEL = r"[A-Za-z0-9_.]+(?:-[A-Za-z0-9_.]+)*?-[0-9][^-/:]*"
_PARTS = ("PLATFORM", "COMPUTE-VARIANT", "PYTHON", "PACKAGE")


def fits_identifier(name: str) -> bool:
    """Return whether a name can be part of an identifier; unlike in a compute, `-` is allowed."""
    return WORD.fullmatch(name.replace("-", "_")) is not None


class Cell(NamedTuple):
    """One point of the matrix. `variant` is its BLAS, or the torch it is compiled against."""

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
    """A parsed identifier: of a cell if it has no stage, else of a job."""

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
    """Parse the identifier of a cell or a job, or fail with what is wrong with it."""
    prefix, colon, cell = text.rpartition(":")
    stage = _stage(prefix, text) if colon else None
    label, _, path = cell.partition("/")
    if not re.fullmatch(_LABEL, label):
        msg = f"`{text}` does not begin with NAME-VERSION"
        shape = job_identifier(stage, "NAME-VERSION", "/".join(_parts(stage)))
        raise SelectionError(msg, hint=f"an identifier is written {shape}")
    parts = path.split("/") if path else []
    expected = _parts(stage)
    flavoured = "COMPUTE-VARIANT" not in expected or "-" in path.partition("/")[2].partition("/")[0]
    if len(parts) != len(expected) or not all(parts) or not flavoured:
        kind = f"a {stage.value} job" if stage else "a cell"
        msg = f"`{text}` does not have the shape of {kind}"
        shape = job_identifier(stage, "NAME-VERSION", "/".join(expected))
        raise SelectionError(msg, hint=f"{kind} is written {shape}")
    return Identifier(stage, label, path)


def _stage(word: str, text: str) -> Stage:
    try:
        return Stage(word)
    except ValueError:
        msg = f"`{text}` names the unknown stage `{word}`"
        raise SelectionError(msg, hint=did_you_mean(word, list(Stage))) from None


def _parts(stage: Stage | None) -> tuple[str, ...]:
    """Return the names of the parts of a path; compute and variant share one."""
    if stage is Stage.PUBLISH:
        return ("CHANNEL",)
    return _PARTS[: max(0, DEPTH[stage or Stage.PACKAGE] - 1)]
