"""What the steps of a recipe compile with, laid out in the job's directory before the first step.

This happens outside of any sandbox, with the caller's own settings for the network; so steps need
none.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from torchyard.config.tables import load_tables
from torchyard.errors import ElsewhereError, HostError
from torchyard.model.order import Task
from torchyard.model.recipe import Stage
from torchyard.model.toolchain import Toolchain
from torchyard.model.yard import Sandbox
from torchyard.recipes import compiles_by_recipe
from torchyard.recipes.pytorch import core_of, environment
from torchyard.run.sandbox import work_path
from torchyard.run.steps import Bench
from torchyard.run.workplace import Workplace

if TYPE_CHECKING:
    from torchyard.toolchain.interpreters import Interpreter


def equip_job(place: Workplace, sandbox: Sandbox, cache: str | None) -> Mapping[str, str]:
    """Lay out a job's toolchain, if it compiles by a recipe; return the variables that show it."""
    order = place.order
    if not compiles_by_recipe(order.task):
        return {}
    if sandbox.root is not None:
        msg = f"{order.task.id} is compiled with this machine's toolchain, not with a root's"
        raise HostError(msg, hint="leave `root` of [sandbox] out, or give steps of your own")
    # It takes longer to load than many a job takes that compiles nothing.
    from torchyard.toolchain.digests import DIGESTS, Digests  # noqa: PLC0415
    from torchyard.toolchain.equip import equip  # noqa: PLC0415

    core = core_of(order)
    seen_as = work_path(sandbox, place.folder)
    # A core that was compiled through a cache wants one for its bindings, too, be it of no use.
    place_of_cache = cache if cache and sandbox.kind == "view" else f"{seen_as}/home/.cache"
    tools = equip(
        core.table("identity"),
        toolchain=_toolchain(core, place_of_cache if core.settings.get("cache") else None),
        compute=core.facts["compute"],
        blas=core.facts["variant"],
        archs=core.words("archs"),
        interpreter=_interpreter(order.task),
        requires=core.words("requires"),
        folder=place.folder,
        seen_as=seen_as,
        tables=load_tables(),
        digests=Digests(place.folder.parent / DIGESTS),
    )
    return tools | environment(order)


def _interpreter(task: Task) -> "Interpreter":
    """The Python of a job; for a core, any will do."""
    from torchyard.toolchain.interpreters import (  # noqa: PLC0415 - as above
        interpreter_for,
        running_interpreter,
    )

    if task.stage is Stage.CORE:
        return running_interpreter()
    try:
        return interpreter_for(task.facts["python"])
    except HostError as error:  # the machine that planned has it
        raise ElsewhereError.of(error.diagnostics) from error


def end_cache(bench: Bench) -> dict[str, str]:
    """End a job's own server of the compile cache, if it has one, and say how well it served."""
    if "SCCACHE_SERVER_UDS" not in bench.tools or bench.sandbox.kind != "view":
        return {}
    from torchyard.toolchain import cache  # noqa: PLC0415 - few jobs have one

    env, folder = bench.environment(), bench.place.folder
    try:
        served = cache.stats(env, folder)
        cache.stop(env, folder)
    except (HostError, OSError, msgspec.MsgspecError):  # the job counts, and not this
        return {}
    return {"cache_hits": str(served.hits), "cache_misses": str(served.misses)}


def _toolchain(core: Task, cache: str | None) -> Toolchain:
    """The table as the file had it, as far as the job depends on it."""
    return msgspec.convert({**core.table("toolchain"), "cache": cache}, Toolchain)
