"""The check of a machine for compute platforms that have no checks of their own."""

from collections.abc import Iterator

from torchyard.compute.registry import platform_for
from torchyard.doctor.bench import Bench
from torchyard.doctor.check import Seen, Trouble, make_check
from torchyard.errors import HostError
from torchyard.toolchain.digests import Digests
from torchyard.toolchain.identity import find_toolkit

_WHY = "it compiles the code for GPUs"


def _toolkit(bench: Bench) -> Iterator[Seen | Trouble]:
    """Toolkits that jobs compile with are there, of platforms without checks of their own."""
    toolchain = bench.demand.toolchain
    if toolchain is None:  # a build by hand, of which only the platforms know what it takes
        return
    for compute in bench.demand.computes:
        platform = platform_for(compute)
        if platform.machine_checks():
            continue
        try:
            kit = find_toolkit(platform, toolchain, compute, Digests())
        except HostError as error:
            yield Trouble(str(error), error.diagnostics[0].hint or _WHY)
        else:
            if kit is not None:
                yield Seen(kit.identity)


TOOLKIT_CHECK = make_check("toolkit", _toolkit)
