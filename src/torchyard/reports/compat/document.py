"""What `torchyard compat` prints with `--json`."""

from collections.abc import Mapping, Sequence
from typing import Literal

from torchyard.checks.compat.extension import ExtensionWheel
from torchyard.checks.compat.fold import fold_wheels
from torchyard.checks.compat.matrix import LoadVerdict, ObstacleKind
from torchyard.checks.smoke.outcome import Outcome, SmokeAttempt
from torchyard.reports.abi import AbiDocument, abi_document
from torchyard.reports.document import JsonDocument


class ObstacleDocument(JsonDocument, kw_only=True):
    """Why a library does not load: the missing symbols, or the libraries that it needs."""

    kind: ObstacleKind
    member: str
    names: list[str]


class TriedDocument(JsonDocument, kw_only=True):
    """The outcome of loading a wheel beside a torch release, and the reason in one line."""

    outcome: Outcome
    why: str


class LoadDocument(JsonDocument, kw_only=True):
    """A torch release: whether the wheel loads with it, and whether its metadata admit it.

    `loads` is by the symbols of both; `tried` is what happened with `--run`, else null.
    """

    torch: str
    file: str
    toolkits: list[str]
    loads: bool
    admitted: bool
    obstacles: list[ObstacleDocument]
    tried: TriedDocument | None

    @property
    def fails(self) -> bool:
        """Whether it does not load, by its symbols or when tried."""
        return not self.loads or (self.tried is not None and self.tried.outcome.is_bad)


class CompatWheelDocument(JsonDocument, kw_only=True):
    """A wheel. `loads` are the releases that it loads with, by its symbols and as tried.

    `refuted` are releases that it admits and does not load with.

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

    @property
    def is_broken(self) -> bool:
        """Whether it needs symbols that nothing defines."""
        obstacles = (one for release in self.releases for one in release.obstacles)
        return any(one.kind is ObstacleKind.UNDEFINED for one in obstacles)


class CompatDocument(JsonDocument, kw_only=True):
    """`torchyard compat --json`: with which torch releases wheels load.

    `builds` says how many of the wheels would serve as well, as their ABI classes allow.
    """

    version: Literal[1] = 1
    builds: int
    wheels: list[CompatWheelDocument]


def compat_document(
    compared: Sequence[tuple[ExtensionWheel, Sequence[LoadVerdict]]],
    tried: Mapping[tuple[str, str], SmokeAttempt] | None = None,
) -> CompatDocument:
    """Describe what was compared, and what was `tried`, by the wheel's name and torch's version."""
    builds = len(fold_wheels(extension for extension, _ in compared))
    wheels = [_wheel(*one, tried or {}) for one in compared]
    return CompatDocument(builds=builds, wheels=wheels)


def _wheel(
    extension: ExtensionWheel,
    verdicts: Sequence[LoadVerdict],
    tried: Mapping[tuple[str, str], SmokeAttempt],
) -> CompatWheelDocument:
    file = str(extension.name)
    releases = [_release(one, tried.get((file, one.torch.version))) for one in verdicts]
    loads = [one.torch for one in releases if not one.fails]
    admitted = [one.torch for one in releases if one.admitted]
    return CompatWheelDocument(
        file=file,
        libraries=len(extension.libraries),
        requires_torch=extension.requires_torch,
        abi=abi_document(extension.abi),
        releases=releases,
        loads=loads,
        refuted=[version for version in admitted if version not in loads],
        unclaimed=[version for version in loads if version not in admitted],
    )


def _release(verdict: LoadVerdict, tried: SmokeAttempt | None) -> LoadDocument:
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
        tried=TriedDocument(outcome=tried.outcome, why=tried.why) if tried else None,
    )
