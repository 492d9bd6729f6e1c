"""Which machines can do which jobs.

A job asks for a platform and for capabilities; such a wish is a kind, and each kind is a builder of
Buildbot's, whose workers are the machines that can fulfil it.
"""

from collections.abc import Iterable, Iterator
from itertools import combinations

from torchyard.model.job_spec import Task
from torchyard.model.recipe import Stage
from torchyard_farm.settings.farm import FarmMachine
from torchyard_farm.settings.schedules import SCHEDULE_BUILDER

PUBLISH = "publish"
"""The kind of jobs that need credentials: their machines do nothing else."""

ANY = "any"
"""In a platform's place: any machine will do."""

_GB = 10**9


def job_class(task: Task) -> str:
    """The kind of machine that a job needs: `linux-x86_64+cuda`."""
    if task.stage is Stage.PUBLISH:
        return PUBLISH
    return _kind(task.scope.partition("/")[0] or ANY, task.needs.capabilities)


def may_publish(builder: str) -> bool:
    """Whether a builder publishes, or hands in plans that do."""
    return builder in (PUBLISH, SCHEDULE_BUILDER)


def _kind(platform: str, capabilities: Iterable[str]) -> str:
    return "+".join((platform, *sorted(set(capabilities))))


def job_classes_of(machine: FarmMachine) -> Iterator[str]:
    """All kinds of jobs that a machine can do."""
    if machine.publish:
        yield PUBLISH
        return
    for count in range(len(machine.capabilities) + 1):
        for some in combinations(machine.capabilities, count):
            yield _kind(machine.platform, some)
            yield _kind(ANY, some)


def machines_by_class(machines: Iterable[FarmMachine]) -> dict[str, list[FarmMachine]]:
    """Who can do which jobs."""
    found: dict[str, list[FarmMachine]] = {}
    for machine in machines:
        for kind in job_classes_of(machine):
            found.setdefault(kind, []).append(machine)
    return found


def queue_window(machines: Iterable[FarmMachine]) -> int:
    """How many jobs of a kind may be waiting or running: enough that no machine ever waits.

    Buildbot looks at every waiting job before it starts one, so a long queue makes it slow.
    """
    return max(8, 2 * sum(machine.slots for machine in machines))


def gigabytes(amount: int | None) -> int:
    """What is booked for a job; one that says nothing gets the smallest share."""
    return max(1, -(-amount // _GB)) if amount else 1


def why_impossible(task: Task, machines: Iterable[FarmMachine]) -> str:
    """Why none of the machines of a job's kind can do it; empty if one can."""
    able = list(machines)
    if not able:
        return f"no machine of the farm is of kind {job_class(task)}"
    for what, wants, have in (
        ("memory", task.needs.memory, max(machine.memory for machine in able)),
        ("disk", task.needs.disk, max(machine.disk for machine in able)),
    ):
        if gigabytes(wants) > have:
            return f"it wants {gigabytes(wants)} GB of {what}, and no machine has more than {have}"
    return ""
