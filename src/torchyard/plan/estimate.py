"""Time, memory and disk of a plan, as far as `[requirements]` give them."""

from torchyard.model.values import Reported
from torchyard.plan.graph import Plan


class Estimate(Reported):
    """Seconds and bytes of the jobs with known needs; `timed` is how many have a time."""

    jobs: int
    timed: int
    machine_time: int
    longest_path: int
    memory: int
    disk: int


def estimate(plan: Plan) -> Estimate:
    """Add up a plan. The longest path is its duration with unlimited machines."""
    timed = total = memory = disk = 0
    ends: list[int] = []
    for job in plan.jobs:
        needs = job.settings.needs
        timed += needs.time is not None
        total += needs.time or 0
        memory = max(memory, needs.memory or 0)
        disk = max(disk, needs.disk or 0)
        ends.append(max((ends[number] for number in job.inputs), default=0) + (needs.time or 0))
    return Estimate(len(plan), timed, total, max(ends, default=0), memory, disk)
