"""The builds that this master is running, as Buildbot's builders list them."""

from collections.abc import Iterator

from buildbot.master import BuildMaster
from buildbot.process.build import Build

from torchyard_farm.scheduling.resources import Resources, resources_for

MACHINE, FINGERPRINT = "machine", "fingerprint"
"""Properties of a build: its machine (workers have it, too), and its job."""


def current_builds(master: BuildMaster) -> Iterator[Build]:
    return (build for builder in master.botmaster.builders.values() for build in builder.building)


def followed_jobs(master: BuildMaster) -> dict[str, dict[str, Resources]]:
    """Return the resources that builds reserve, by machine and fingerprint."""
    found: dict[str, dict[str, Resources]] = {}
    for build in current_builds(master):
        needs = resources_for(build.getProperty("memory"), build.getProperty("disk"))
        found.setdefault(build.getProperty(MACHINE), {})[build.getProperty(FINGERPRINT)] = needs
    return found
