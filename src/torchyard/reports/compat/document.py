"""What `torchyard compat` prints with `--json`."""

from collections.abc import Sequence
from typing import Literal

from torchyard.checks.compat.extension import ExtensionWheel
from torchyard.checks.compat.fold import fold_wheels
from torchyard.checks.compat.matrix import LoadVerdict, ObstacleKind
from torchyard.reports.abi import AbiDocument, abi_document
from torchyard.reports.document import JsonDocument


class ObstacleDocument(JsonDocument, kw_only=True):
    """Why a library does not load: the missing symbols, or the libraries that it needs."""

    kind: ObstacleKind
    member: str
    names: list[str]


class LoadDocument(JsonDocument, kw_only=True):
    """A torch release: whether the wheel loads with it, and whether its metadata admit it."""

    torch: str
    file: str
    toolkits: list[str]
    loads: bool
    admitted: bool
    obstacles: list[ObstacleDocument]


class CompatWheelDocument(JsonDocument, kw_only=True):
    """A wheel. `refuted` are releases that it admits and does not load with.

    `unclaimed` are those that it loads with and does not admit. Without releases to compare with,
    the lists are empty.
    """

    file: str
    libraries: int
    requires_torch: str | None
    abi: AbiDocument
    releases: list[LoadDocument]
    loads: list[str]
    refuted: list[str]
    unclaimed: list[str]


class CompatDocument(JsonDocument, kw_only=True):
    """`torchyard compat --json`: with which torch releases wheels load.

    `builds` says how many of the wheels would serve as well, as their ABI classes allow.
    """

    version: Literal[1] = 1
    builds: int
    wheels: list[CompatWheelDocument]


def compat_document(
    compared: Sequence[tuple[ExtensionWheel, Sequence[LoadVerdict]]],
) -> CompatDocument:
    builds = len(fold_wheels(extension for extension, _ in compared))
    return CompatDocument(builds=builds, wheels=[_wheel(*one) for one in compared])


def _wheel(extension: ExtensionWheel, verdicts: Sequence[LoadVerdict]) -> CompatWheelDocument:
    loads = [one.torch.version for one in verdicts if one.loads]
    admitted = [one.torch.version for one in verdicts if one.admitted]
    return CompatWheelDocument(
        file=str(extension.name),
        libraries=len(extension.libraries),
        requires_torch=extension.requires_torch,
        abi=abi_document(extension.abi),
        releases=[_release(one) for one in verdicts],
        loads=loads,
        refuted=[version for version in admitted if version not in loads],
        unclaimed=[version for version in loads if version not in admitted],
    )


def _release(verdict: LoadVerdict) -> LoadDocument:
    return LoadDocument(
        torch=verdict.torch.version,
        file=verdict.torch.file,
        toolkits=list(verdict.torch.toolkits),
        loads=verdict.loads,
        admitted=verdict.admitted,
        obstacles=[
            ObstacleDocument(kind=one.kind, member=one.member, names=list(one.names))
            for one in verdict.obstacles
        ],
    )
