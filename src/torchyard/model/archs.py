"""Architectures of GPUs, as arch lists name them and as compilers and libraries do."""

from collections.abc import Iterable, Iterator

_PTX = "+PTX"


def device_codes(archs: Iterable[str]) -> Iterator[str]:
    """The kinds of code that an arch list means: `9.0+PTX` is sm_90 and compute_90.

    AMD's names are the same everywhere, with their features: `gfx90a:xnack+`.
    """
    for arch in archs:
        number = arch.removesuffix(_PTX).replace(".", "")
        if number.startswith("gfx"):
            yield number
        elif number:
            yield f"sm_{number}"
            if arch.endswith(_PTX):
                yield f"compute_{number}"
