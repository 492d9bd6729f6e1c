"""Compare a channel with the plan of a file."""

from torchyard.config.load import load_config
from torchyard.features.coverage.report import CoverageReport
from torchyard.plan.expand import expand
from torchyard.plan.select import PlanSelection, ReadSelection
from torchyard.publish.coverage import Presence, find_coverage
from torchyard.workspace.channel_config import channel_subset
from torchyard.workspace.locations import read_channel


def find_missing(
    channel: str,
    *,
    version: str | None = None,
    subset: str | None = None,
    file: str = "torchyard.toml",
) -> CoverageReport:
    """Find the packages of a plan that a channel has, and those it lacks.

    Args:
        channel: The channel: its name in the file, its address or its directory.
        version: The version to look for, instead of the file's.
        subset: A named part of the matrix, instead of the channel's.
        file: The configuration.
    """
    config = load_config(file)
    subset = subset or channel_subset(config, config.channels.get(channel))
    opened = read_channel(channel, file)
    planned = ReadSelection(expand(config), PlanSelection(subset)).cells()
    wanted = version or config.project.version
    found = find_coverage(opened, config.project.name, wanted, planned)
    label = f"{found.project}-{found.version}"
    cells = {f"{label}/{cell.path}": presence for cell, presence in found.cells.items()}
    return CoverageReport(
        channel=opened.url,
        project=found.project,
        project_version=found.version,
        subset=subset,
        cells=cells,
        missing=[cell for cell, presence in cells.items() if presence is Presence.MISSING],
        versions=found.versions,
    )
