"""The control groups of this process: /proc and the affinity lack a container's limits."""

from collections.abc import Iterator
from math import ceil
from pathlib import Path
from typing import NamedTuple

SYSTEM = Path("/")


class ControlGroup(NamedTuple):
    """A group of this process, and whether it has version 2."""

    folder: Path
    unified: bool

    def read(self, name: str) -> str:
        """Return the content of a file of the group; empty if it does not exist."""
        return read_kernel_file(self.folder / name).strip()


def control_groups(controller: str, system: Path = SYSTEM) -> Iterator[ControlGroup]:
    """Yield the groups of this process with a controller, and all their ancestors.

    In a container, the path may be the host's and not exist below the container's own mount; then
    only the last ancestor, the mount itself, is left, which is the container's group. `system` is
    the directory with proc and sys; tests pass recorded ones.
    """
    mounts = system / "sys/fs/cgroup"
    for line in read_kernel_file(system / "proc/self/cgroup").splitlines():
        _, names, path = line.split(":", 2)
        if names and controller not in names.split(","):
            continue
        mount = mounts / controller if names else mounts
        group = mount.joinpath(*(part for part in path.split("/") if part not in {"", ".."}))
        for folder in (group, *group.parents):
            yield ControlGroup(folder, unified=not names)
            if folder == mount:
                break


def allowed_processors(system: Path = SYSTEM) -> int | None:
    """Return how many processors the tightest group allows, at least 1; None if unlimited."""
    shares = []
    for group in control_groups("cpu", system):
        if group.unified:
            quota, _, period = group.read("cpu.max").partition(" ")
        else:
            quota, period = group.read("cpu.cfs_quota_us"), group.read("cpu.cfs_period_us")
        if quota.isdigit() and period.isdigit() and int(quota) and int(period):
            shares.append(int(quota) / int(period))
    return ceil(min(shares)) if shares else None


def read_kernel_file(path: Path) -> str:
    """Read a file of the kernel; empty if it does not exist."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
