"""What `torchyard develop build --json` prints."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Literal

from torchyard.model.values import Reported
from torchyard.run.development import MadeFile
from torchyard.toolchain.ninja import is_compiled, is_unit


class MadeKind(StrEnum):
    """What ninja made: a compiled unit, something that is linked or archived, another file."""

    UNIT = "unit"
    LIBRARY = "library"
    OTHER = "other"


class MadeDocument(Reported, kw_only=True):
    """A file that ninja made; without `why` only because of what it is made from."""

    output: str
    kind: MadeKind
    why: str


class DevelopDocument(Reported, kw_only=True):
    """`torchyard develop build --json`."""

    version: Literal[1] = 1
    cell: str
    tree: str
    seconds: float
    made: list[MadeDocument]


def develop_document(
    cell: str, tree: str, seconds: float, made: Sequence[MadeFile]
) -> DevelopDocument:
    return DevelopDocument(
        cell=cell,
        tree=tree,
        seconds=round(seconds, 3),
        made=[MadeDocument(output=one.output, kind=_kind(one.output), why=one.why) for one in made],
    )


def _kind(output: str) -> MadeKind:
    if not is_compiled(output):
        return MadeKind.OTHER
    return MadeKind.UNIT if is_unit(output) else MadeKind.LIBRARY
