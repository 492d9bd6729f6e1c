"""What `torchyard coverage` prints with `--json`."""

from typing import Literal

from torchyard.model.values import Reported
from torchyard.publish.coverage import Coverage, Presence


class CoverageDocument(Reported, kw_only=True):
    """`torchyard coverage --json`: cells of a plan, by what a channel has of them."""

    version: Literal[1] = 1
    channel: str
    project: str
    project_version: str
    subset: str | None
    there: list[str]
    missing: list[str]
    yanked: list[str]
    unplanned: list[str]
    versions: list[str]


def coverage_document(coverage: Coverage, channel: str, subset: str | None) -> CoverageDocument:
    label = f"{coverage.project}-{coverage.version}"
    named = {
        presence: [f"{label}/{cell.path}" for cell in coverage.those(presence)]
        for presence in Presence
    }
    return CoverageDocument(
        channel=channel,
        project=coverage.project,
        project_version=coverage.version,
        subset=subset,
        there=named[Presence.THERE],
        missing=named[Presence.MISSING],
        yanked=named[Presence.YANKED],
        unplanned=named[Presence.UNPLANNED],
        versions=list(coverage.versions),
    )
