"""Whether a build wants a compute platform, for checks of the machine."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple, TypeVar

from torchyard.compute.platform import ComputePlatform
from torchyard.doctor.bench import Bench, is_on
from torchyard.errors import HostError

_Kit = TypeVar("_Kit")


class ComputeDemand(NamedTuple):
    """The computes of one platform that a build wants.

    Without a name, any version will do; then `required` says whether it is wanted at all, or taken
    only if it is there.
    """

    computes: tuple[str, ...]
    required: bool


def compute_demand(bench: Bench, platform: ComputePlatform) -> ComputeDemand | None:
    """Return what a build wants of a platform, or None if nothing.

    A build by hand wants what `--compute` says, or the platform's switch, such as USE_CUDA; without
    either, its CMake code takes what it finds.
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
    """Yield the toolkits of a platform that a build wants and that are there."""
    demand = compute_demand(bench, platform)
    for compute in demand.computes if demand else ():
        with suppress(HostError):
            kit = by_hand(bench) if bench.by_hand else of_job(bench, compute)
            if kit is not None:
                yield kit
