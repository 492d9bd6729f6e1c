"""Inspect this machine for a build: of cells of a file, or by hand of a tree."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from torchyard.compute.registry import look_up
from torchyard.config.tables import load_tables
from torchyard.doctor.bench import Bench, BuildDemand
from torchyard.doctor.tree import read_tree
from torchyard.engines.admission import (
    Examination,
    all_machine_checks,
    examine,
)
from torchyard.engines.builtin.local import LocalEngine, check_steps
from torchyard.engines.pending import job_graph, missing_jobs
from torchyard.errors import HostError, SelectionError, UsageError
from torchyard.host.machine import platform_name
from torchyard.host.network_settings import fetching_environment
from torchyard.host.process import stream
from torchyard.model.tables import Tables
from torchyard.workspace.arguments import check_name, refuse_given
from torchyard.workspace.build import prepare_build
from torchyard.workspace.build_request import BuildRequest
from torchyard.workspace.progress import ignore_line

_TREE = ("CMakeLists.txt", "setup.py", "pyproject.toml")


def inspect_machine(
    request: BuildRequest,
    *,
    source: str | None = None,
    compute: str | None = None,
    blas: str | None = None,
    fix: bool = False,
    work: str | None = None,
    on_line: Callable[[str], None] = ignore_line,
) -> Examination:
    """Inspect this machine for a build of cells, or for a build by hand of a source tree.

    Args:
        request: The cells, and their configuration.
        source: A source tree to build by hand; by default the current directory's, if there is no
            configuration.
        compute: The compute platform of a build by hand.
        blas: The BLAS of a build by hand.
        fix: Run the commands that change only tree or environment, and check again.
        work: The work directory of jobs.
        on_line: Called with each line that these commands print.
    """
    if source is None and not request.select and not Path(request.file).exists():
        source = _tree_here(request.file)
    if source is None:
        refuse_given({"--compute": compute, "--blas": blas}, "is only for --source")
        look = partial(examine_cells, request, work)
    else:
        refuse_given(
            {"SELECTOR": request.select}, "is built by jobs, and --source is for a build by hand"
        )
        look_up([compute or ""])
        tables = load_tables()
        check_name(compute or "", ("", *tables.compute), "compute platform")
        check_name(blas or "", ("", *tables.blas), "BLAS")
        look = partial(examine_source, source, tables, compute or "", blas or "")
    examination = look()
    return look() if fix and _fix(examination, on_line) else examination


def _tree_here(file: str) -> str:
    """Return the current directory, if it has a source tree."""
    if any(Path(name).exists() for name in _TREE):
        return "."
    msg = f"there is no `{file}` here, and no source tree"
    raise UsageError(msg, hint="name a checkout: torchyard doctor --source DIR")


def examine_source(folder: str, tables: Tables, compute: str, blas: str) -> Examination:
    """Inspect this shell for a build by hand of the tree in a directory."""
    tree = Path(folder).absolute()
    if not tree.is_dir():
        msg = f"there is no directory `{folder}`"
        raise HostError(msg, hint="name the directory of a checkout")
    facts = read_tree(tree)
    what = f"torch {facts.release}" if facts.is_torch else tree.name
    platform = tables.platforms.get(platform_name())
    demand = BuildDemand(
        title=f"{what} in {tree}, built by hand",
        release=facts.release,
        is_torch=facts.is_torch,
        computes=(compute,) if compute else (),
        blas=(blas,) if blas else (),
        blas_names=platform.blas if platform else (),
        source=str(tree),
        work=str(tree),
    )
    return examine(Bench(demand, os.environ), all_machine_checks().values())


def examine_cells(request: BuildRequest, work: str | None = None) -> Examination:
    """Inspect this machine for cells' jobs without results, like `build`."""
    engine = LocalEngine(work=work)
    build = prepare_build(msgspec.structs.replace(request, engine=engine))
    plan = build.plan
    graph = job_graph(plan)
    left = missing_jobs(graph, build.store.known(graph.fingerprints), graph.wanted)
    check_steps(plan, left)
    scoped = [plan.jobs[number] for number in left if len(plan.jobs[number].scope) > 1]
    others = {job.scope[0] for job in scoped} - {platform_name()}
    if others and all(job.scope[0] in others for job in scoped):
        named = " ".join(request.select) or "the file"
        msg = f"no cell of {named} is built on {platform_name()}: {', '.join(sorted(others))} only"
        raise SelectionError(msg, hint="run it on a machine of that platform")
    here = [number for number in left if others.isdisjoint(plan.jobs[number].scope[:1])]
    return engine.examine(plan, here, build.store, build.context)


def _fix(examination: Examination, on_line: Callable[[str], None]) -> int:
    """Run the safe and local cures, each once; return how many succeeded."""
    cures = dict.fromkeys(f.cure for f in examination.findings if f.fixable and f.cure)
    mended = 0
    for cure in cures:
        on_line(f"+ {cure}")
        mended += stream(["bash", "-c", cure], on_line, fetching_environment()) == 0
    return mended
