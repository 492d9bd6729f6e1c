"""Whether a build uses a compute platform, for checks of the machine."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple, TypeVar

from torchyard.compute.platform import ComputePlatform
from torchyard.doctor.bench import Bench, is_on
from torchyard.errors import HostError

_Kit = TypeVar("_Kit")


class ComputeDemand(NamedTuple):
    """The computes of a platform that a build uses.

    An empty name means any version; `required` is false if the platform is used only if installed.
    """

    computes: tuple[str, ...]
    required: bool


def compute_demand(bench: Bench, platform: ComputePlatform) -> ComputeDemand | None:
    """Return the computes of a platform that a build uses, or None.

    A manual build uses those of `--compute`, or of the platform's switch, such as USE_CUDA; without
    either, its CMake code uses what it finds.
    """
    named = tuple(compute for compute in bench.demand.computes if platform.recognises(compute))
    if named:
        return ComputeDemand(named, required=True)
    if bench.demand.computes or not bench.by_hand:
        return None
    switch = bench.env.get(platform.cmake_switch, "")
    return None if switch and not is_on(switch) else ComputeDemand(("",), required=bool(switch))


def demanded_kits(
    bench: Bench,
    platform: ComputePlatform,
    *,
    by_hand: Callable[[Bench], _Kit | None],
    of_job: Callable[[Bench, str], _Kit],
) -> Iterator[_Kit]:
    """Yield the installed toolkits of a platform that a build uses."""
    demand = compute_demand(bench, platform)
    for compute in demand.computes if demand else ():
        with suppress(HostError):
            kit = by_hand(bench) if bench.by_hand else of_job(bench, compute)
            if kit is not None:
                yield kit
