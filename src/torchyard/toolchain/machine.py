"""Everything on this machine that could compile, for people to look at."""

from contextlib import suppress

from torchyard.errors import HostError
from torchyard.host.machine import platform_name
from torchyard.model.tables import Tables
from torchyard.model.values import Value
from torchyard.toolchain.blas import Blas, find_blas
from torchyard.toolchain.compilers import Compiler, find_compilers
from torchyard.toolchain.cuda import Toolkit, find_cuda, system_toolkits
from torchyard.toolchain.digests import Digests
from torchyard.toolchain.interpreters import Interpreter, find_interpreters
from torchyard.toolchain.pypi import locks
from torchyard.toolchain.rocm import Rocm, system_rocms


class Machine(Value, kw_only=True):
    """What was found, and what PyPI has for it."""

    platform: str
    interpreters: tuple[Interpreter, ...]
    compilers: tuple[Compiler, ...]
    cuda: tuple[Toolkit, ...]
    rocm: tuple[Rocm, ...]
    blas: tuple[Blas, ...]


def look_around(tables: Tables, digests: Digests) -> Machine:
    """Look for all that compiles; nothing is installed for it."""
    platform = platform_name()
    compilers = find_compilers(digests)
    releases = [name.removeprefix("cuda-") for name in locks() if name.startswith("cuda-")]
    offered = tuple(find_cuda(release, "pypi") for release in releases)
    names = tables.platforms[platform].blas if platform in tables.platforms else ()
    blas: list[Blas] = []
    for name in names if compilers else ():
        for origin in ("system", "pypi"):
            with suppress(HostError):
                found = find_blas(name, origin, compilers[0], digests)
                blas += [found] if found.origin == origin else []
    return Machine(
        platform=platform,
        interpreters=find_interpreters(),
        compilers=compilers,
        cuda=(*system_toolkits(digests), *offered),
        rocm=system_rocms(digests),
        blas=tuple(blas),
    )
