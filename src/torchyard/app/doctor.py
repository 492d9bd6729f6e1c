"""Inspect this machine for a build: cells of a file, or a tree that is built by hand."""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from torchyard.doctor.bench import Bench, BuildDemand
from torchyard.doctor.tree import read_tree
from torchyard.engines.admission import (
    Examination,
    all_machine_checks,
    examine,
    plain_environment,
)
from torchyard.engines.builtin.local import LocalEngine, check_steps
from torchyard.engines.pending import demanded, job_graph
from torchyard.errors import HostError, SelectionError
from torchyard.host.machine import platform_name
from torchyard.host.network_settings import fetching_environment
from torchyard.host.process import stream
from torchyard.model.tables import Tables
from torchyard.workspace.build import prepare_build
from torchyard.workspace.build_request import BuildRequest


def examine_source(
    folder: str, tables: Tables, *, compute: str = "", blas: str = ""
) -> Examination:
    """Inspect the shell that this runs in, for a build by hand of the tree in a directory."""
    place = Path(folder).absolute()
    if not place.is_dir():
        msg = f"there is no directory `{folder}`"
        raise HostError(msg, hint="name the directory of a checkout")
    facts = read_tree(place)
    what = f"torch {facts.release}" if facts.is_torch else place.name
    platform = tables.platforms.get(platform_name())
    demand = BuildDemand(
        title=f"{what} in {place}, built by hand",
        release=facts.release,
        is_torch=facts.is_torch,
        computes=(compute,) if compute else (),
        blas=(blas,) if blas else (),
        blas_names=platform.blas if platform else (),
        source=str(place),
        work=str(place),
    )
    return examine(Bench(demand, os.environ), all_machine_checks().values())


def examine_cells(request: BuildRequest, work: str | None = None) -> Examination:
    """Inspect this machine for the jobs of some cells that have no results yet, as `build` does."""
    engine = LocalEngine(work=work)
    build = prepare_build(msgspec.structs.replace(request, engine=engine))
    plan = build.plan
    graph = job_graph(plan)
    left = demanded(graph, build.store.known(graph.fingerprints), graph.wanted)
    check_steps(plan, left)
    scoped = [plan.jobs[number] for number in left if len(plan.jobs[number].scope) > 1]
    others = {job.scope[0] for job in scoped} - {platform_name()}
    if others and all(job.scope[0] in others for job in scoped):
        named = " ".join(request.select) or "the file"
        msg = f"no cell of {named} is built on {platform_name()}: {', '.join(sorted(others))} only"
        raise SelectionError(msg, hint="run it on a machine of that platform")
    here = [number for number in left if others.isdisjoint(plan.jobs[number].scope[:1])]
    return engine.examine(plan, here, build.store, build.context)


def examine_in_root(request: str) -> Examination:
    """Do the part of `examine_jobs` that is done in the root."""
    demand = msgspec.json.decode(request, type=BuildDemand)
    demand = msgspec.structs.replace(demand, source="")  # not visible there
    bench = Bench(demand, plain_environment())
    return examine(bench, [one for one in all_machine_checks().values() if not one.outside])


def mend(examination: Examination, on_line: Callable[[str], None]) -> int:
    """Run the cures that are safe and local, each once; return how many succeeded."""
    cures = dict.fromkeys(one.cure for one in examination.findings if one.fixable and one.cure)
    mended = 0
    for cure in cures:
        on_line(f"+ {cure}")
        mended += stream(["bash", "-c", cure], on_line, fetching_environment()) == 0
    return mended
