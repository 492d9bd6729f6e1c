"""The builds that a master has begun and not ended: Buildbot knows them by their builders."""

from collections.abc import Iterator
from typing import Any

from torchyard_farm.scheduling.resources import Resources, resources_for

MACHINE, FINGERPRINT = "machine", "fingerprint"
"""Properties of builds: whose they are (workers have this, too), and of which job."""


def current_builds(master: Any) -> Iterator[Any]:
    return (build for one in master.botmaster.builders.values() for build in one.building)


def followed_jobs(master: Any) -> dict[str, dict[str, Resources]]:
    """What is booked by the builds on each machine, by fingerprint."""
    found: dict[str, dict[str, Resources]] = {}
    for build in current_builds(master):
        wants = resources_for(build.getProperty("memory"), build.getProperty("disk"))
        found.setdefault(build.getProperty(MACHINE), {})[build.getProperty(FINGERPRINT)] = wants
    return found
