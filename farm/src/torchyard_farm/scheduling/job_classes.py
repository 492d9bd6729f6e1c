"""Classes of jobs, and the machines that can do them.

A job needs a platform and capabilities: its class. Each class is a Buildbot builder, whose workers
are those of the machines that can do its jobs.
"""

from collections.abc import Iterable, Iterator
from itertools import combinations

from torchyard.model.job_spec import Task
from torchyard.model.recipe import Stage
from torchyard_farm.scheduling.resources import whole_gigabytes
from torchyard_farm.settings.farm import FarmMachine
from torchyard_farm.settings.schedules import SCHEDULE_BUILDER

PUBLISH = "publish"
"""The class of jobs that need credentials: their machines do nothing else."""

ANY = "any"
"""Replaces a platform if any machine is suitable."""


def job_class(task: Task) -> str:
    """Return the class of a job: `linux-x86_64+cuda`."""
    if task.stage is Stage.PUBLISH:
        return PUBLISH
    return _kind(task.scope.partition("/")[0] or ANY, task.needs.capabilities)


def may_publish(builder: str) -> bool:
    """Return whether a builder publishes, or submits plans that do."""
    return builder in (PUBLISH, SCHEDULE_BUILDER)


def _kind(platform: str, capabilities: Iterable[str]) -> str:
    return "+".join((platform, *sorted(set(capabilities))))


def job_classes_of(machine: FarmMachine) -> Iterator[str]:
    """Return all classes of jobs that a machine can do."""
    if machine.publish:
        yield PUBLISH
        return
    for count in range(len(machine.capabilities) + 1):
        for capabilities in combinations(machine.capabilities, count):
            yield _kind(machine.platform, capabilities)
            yield _kind(ANY, capabilities)


def machines_by_class(machines: Iterable[FarmMachine]) -> dict[str, list[FarmMachine]]:
    """Return the machines that can do the jobs of each class."""
    found: dict[str, list[FarmMachine]] = {}
    for machine in machines:
        for kind in job_classes_of(machine):
            found.setdefault(kind, []).append(machine)
    return found


def queue_window(machines: Iterable[FarmMachine]) -> int:
    """Return how many jobs of a class may be pending or running: enough to keep all machines busy.

    Buildbot checks every pending job before each start, so a long queue makes it slow.
    """
    return max(8, 2 * sum(machine.slots for machine in machines))


def why_impossible(task: Task, machines: Iterable[FarmMachine]) -> str:
    """Return why no machine of a job's class can do it, or an empty string."""
    able = list(machines)
    if not able:
        return f"no machine of the farm can do jobs of class {job_class(task)}"
    for what, needs, have in (
        ("memory", task.needs.memory, max(machine.memory for machine in able)),
        ("disk", task.needs.disk, max(machine.disk for machine in able)),
    ):
        if (size := whole_gigabytes(needs)) > have:
            return f"it needs {size} GB of {what}, and no machine has more than {have}"
    return ""
