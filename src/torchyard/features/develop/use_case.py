"""Develop a project in a tree that starts from a finished core."""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from torchyard.config.tables import load_tables
from torchyard.errors import BusyError, ConfigError, SelectionError, StoreError, UsageError
from torchyard.features.develop.report import DevelopReport, DevelopStart
from torchyard.host.files import absolute
from torchyard.host.locks import report_full_disk
from torchyard.host.process import replace_by_sandboxed
from torchyard.model.config import SandboxKind
from torchyard.model.event import Listener
from torchyard.model.job_spec import JobSpec, Task
from torchyard.model.lock import CONDA
from torchyard.model.recipe import Stage
from torchyard.model.result import Result
from torchyard.model.selector import Name, NameSelector
from torchyard.model.step import Step
from torchyard.recipes.recipe import DevelopSteps
from torchyard.recipes.registry import recipe_module
from torchyard.run.conditions import enclosure_of, with_found_root
from torchyard.run.development import (
    RECORD_FILE,
    DevelopDir,
    Development,
    OpenDevelopment,
    restore_core,
    set_up,
)
from torchyard.run.environment import bring_ninja, cell_variables
from torchyard.run.provision import equip_here, equip_job
from torchyard.run.sandbox import enclose
from torchyard.store.store import Store, Unusable
from torchyard.toolchain.activation import CellEnvironment, write_scripts
from torchyard.toolchain.ninja import is_unit, read_log
from torchyard.toolchain.pypi import pinned_pip
from torchyard.workspace.cell_job import CellJob, find_cell_job
from torchyard.workspace.locations import compile_cache_url, home_directory, open_store
from torchyard.workspace.progress import ignore_line
from torchyard.workspace.run import job_conditions

_HOME = "develop"
"""The directory of developments, beside the store."""


class DevelopRequest(NamedTuple):
    """A requested development: of a job's cell, in a directory, possibly in a checkout."""

    job: CellJob
    store: Store
    file: str
    folder: Path
    tree: Path | None

    @property
    def core(self) -> Task:
        """The job whose result the development starts from."""
        return self.job.spec.compiled

    def find_core(self) -> Result | None:
        """Return the core's result, if the store has it.

        In a checkout, the newest core with only a different source is as good: ninja compiles the
        differences.
        """
        found = self.store.find(self.core.fingerprint)
        if found is not None or self.tree is None:
            return found
        broken: Unusable = {}
        others = (r for r in self.store.results(unusable=broken) if self._is_alike(r))
        return max(others, key=lambda result: result.started, default=None)

    def _is_alike(self, other: Result) -> bool:
        task, core = other.spec.task, self.core
        parts = (task.id, task.recipe, task.stage_revision, task.settings)
        return parts == (core.id, core.recipe, core.stage_revision, core.settings)


def request_development(
    file: str = "torchyard.toml",
    select: Sequence[str] = (),
    *,
    changes: Sequence[str] = (),
    store: str | None = None,
    tree: str | None = None,
) -> DevelopRequest:
    """Return the request for a development of a cell; do nothing yet.

    Raises:
        ConfigError: The recipe has no core to start from.
        UsageError: The checkout can't be used.
    """
    job = find_cell_job(file, select, changes)
    _steps_of(job.spec)
    folder = Path(home_directory(file), _HOME, job.spec.task.scope)
    checkout = Path(tree).resolve() if tree else None
    if checkout is not None and not (folder / RECORD_FILE).exists():
        _refuse_built(checkout)
    return DevelopRequest(job, open_store(store, file, job.config), file, folder, checkout)


def start_development(
    request: DevelopRequest, on_event: Listener, say: Callable[[str], object]
) -> DevelopStart:
    """Set up a development, unless that is done; edits in it are kept.

    Raises:
        StoreError: The store lacks the core.
    """
    workdir = DevelopDir(request.folder, request.job.spec, request.tree)
    with report_full_disk(workdir.folder), workdir.alone(wait=False) as alone:
        _refuse_busy(workdir, alone=alone)
        found = _existing(request)
        if found is not None and found.record.ready:
            return DevelopStart(found)
        core = request.find_core()
        if core is None:
            msg = f"the store has no finished {request.core.id}"
            raise StoreError(msg, hint=f"`torchyard build {request.core.id}` makes it")
        if found is not None and found.record.core != core.fingerprint:
            msg = f"{request.folder} was started with another core"
            raise UsageError(msg, hint="remove it to start anew")
        development = _open(request, workdir, core, on_event)
        say(f"restores {core.id} of {core.started} in {development.tree}")
        folder = request.job.config.project.recipe.build_tree or ""
        restored = restore_core(request.store, core, folder, development.tree)
        before = read_log(development.tree / "build/.ninja_log")
        made = set_up(development, _steps_of(request.job.spec), restored, say)
        again = [file for file in made if file.output in before and is_unit(file.output)]
        development.save(ready=True)
        return DevelopStart(development, made, again)


def build_development(
    targets: Sequence[str] = (),
    *,
    jobs: int | None = None,
    cell: str | None = None,
    file: str = "torchyard.toml",
    on_line: Callable[[str], object] = ignore_line,
) -> DevelopReport:
    """Compile edited files, and install them where Python imports them from.

    Args:
        targets: Targets for ninja; then nothing is installed.
        jobs: Compilers at once; by default ninja's number.
        cell: A selector of the tree's cell, if there are several trees.
        file: The configuration.
        on_line: Called with ninja's output.
    """
    development, began = find_development(file, cell), time.monotonic()
    workdir = development.workdir
    with report_full_disk(workdir.folder), workdir.alone(wait=False) as alone:
        _refuse_busy(workdir, alone=alone)
        made = development.build(on_line, tuple(targets), jobs or 0)
        if not targets:
            development.install(_steps_of(workdir.spec).install, lambda _: None)
        development.write_commands()
    return DevelopReport(
        cell=development.record.cell,
        tree=str(development.tree),
        seconds=round(time.monotonic() - began, 3),
        made=made,
    )


def enter_development(
    words: Sequence[str] = (), *, cell: str | None = None, file: str = "torchyard.toml"
) -> None:
    """Replace this process by a command, or a shell, that sees the tree like compilers."""
    development = find_development(file, cell)
    context = development.context
    step = Step(run=tuple(words) or ("bash", "--norc"), network=True).filled(context.words())
    argv = enclose(context.sandbox, step, context.workdir, None)
    env = context.environment() | {"TERM": "xterm-256color", "PS1": f"{development.record.cell}$ "}
    kind = context.sandbox.kind
    replace_by_sandboxed(argv, cwd=context.workdir.folder, env=env, kind=kind)


def find_development(file: str, cell: str | None) -> OpenDevelopment:
    """Return the development of a cell, or around the current directory, or the only one."""
    here, home = Path.cwd(), Path(home_directory(file), _HOME)
    around = [folder for folder in here.parents if (folder / RECORD_FILE).exists()]
    folders = around if cell is None and around else _folders(home)
    found = [OpenDevelopment.at(folder) for folder in folders]
    inside = [tree for tree in found if here.is_relative_to(tree.tree)]
    fitting = inside if cell is None and inside else found
    if cell is not None:
        cells = {name: tree for tree in found for name in _cells_of(tree)}
        selector = NameSelector([cell], cells)
        named = {c.workdir.folder: c for name, c in cells.items() if selector.matches(name)}
        fitting = list(named.values())
    if len(fitting) == 1 and fitting[0].record.ready:
        return fitting[0]
    names = ", ".join(sorted(tree.record.cell for tree in fitting or found))
    if len(fitting) == 1:
        msg, hint = f"{names} is only partly set up", f"run `torchyard develop {names}` again"
    elif not found:
        msg, hint = f"nothing is developed in {home}", "begin with `torchyard develop CELL`"
    else:
        msg, hint = f"there are several trees: {names}", "name one with --cell"
    raise SelectionError(msg, hint=hint)


def _cells_of(development: OpenDevelopment) -> Iterator[Name]:
    """Return the cells of a development: one for each kind of package."""
    bindings = Name.parse(f"{Stage.BINDINGS}:{development.record.cell}")
    return (bindings._replace(stage="", package=kind) for kind in load_tables().packages)


def _folders(home: Path) -> list[Path]:
    return sorted(record.parent for record in home.glob(f"*/*/*/{RECORD_FILE}"))


def _steps_of(spec: JobSpec) -> DevelopSteps:
    """Return the recipe's steps for development, if it has any."""
    develop = getattr(recipe_module(spec.task.recipe), "develop", None)
    if develop is None or not any(task.stage is Stage.CORE for task in spec.tasks):
        msg = f"recipe `{spec.task.recipe}` has no core to start from"
        shell = "the shell of `torchyard toolchain activate`"
        hint = f"run `pip install --no-build-isolation -e .` in {shell}"
        raise ConfigError(msg, hint=hint)
    steps: DevelopSteps = develop(spec)
    return steps


def _refuse_built(checkout: Path) -> None:
    """Refuse a directory that is no checkout, or was built at another path."""
    if not checkout.is_dir():
        msg = f"there is no directory `{checkout}`"
        raise UsageError(msg, hint="name a checkout of the project")
    if (checkout / "build").exists():
        msg = f"`{checkout}` already has a directory `build`, where the core would be restored"
        raise UsageError(msg, hint="move it away")


def _refuse_busy(workdir: DevelopDir, *, alone: bool) -> None:
    if not alone:
        msg = f"another process is at work in {workdir.folder}"
        raise BusyError(msg, hint="wait for it, or stop it")


def _existing(request: DevelopRequest) -> OpenDevelopment | None:
    """Return the existing development; refuse one in another tree."""
    if not (request.folder / RECORD_FILE).exists():
        return None
    found = OpenDevelopment.at(request.folder)
    if request.tree is not None and found.tree != request.tree:
        msg = f"{found.record.cell} is developed in {found.tree}"
        raise UsageError(msg, hint=f"remove {request.folder} to begin anew")
    return found


def _open(
    request: DevelopRequest, workdir: DevelopDir, core: Result, on_event: Listener
) -> OpenDevelopment:
    """Make the directories and the toolchain of a development, and write its record."""
    spec, config = request.job
    workdir.make_directories()
    conditions = job_conditions(spec, request.file, str(workdir.folder.parent), None)
    is_rooted = conditions.sandbox.root is not None or bool(spec.compiled.table(CONDA))
    kind: SandboxKind = "bwrap" if is_rooted else "view"
    conditions = with_found_root(conditions, spec, kind)
    if CONDA not in spec.task.settings:  # its environment has one
        bring_ninja(workdir.folder / "tools")
    if is_rooted:
        tools = equip_job(workdir, kind, conditions, on_event)
    else:
        cache = compile_cache_url(request.file, config)
        pip = pinned_pip(spec.compiled.words("requires"))
        tools = equip_here(workdir, kind, cache, on_event, also=pip)
    record = Development(
        cell=spec.task.cell,
        core=core.fingerprint,
        tree=str(request.tree) if request.tree else None,
        file=absolute(request.file),
        enclosure=enclosure_of(kind, workdir, conditions, tools, request.store),
        tools=dict(tools),
    )
    development = OpenDevelopment(workdir, record)
    if not is_rooted:
        outside = {name: development.outside(value) for name, value in tools.items()}
        variables = cell_variables(spec.task, outside, str(workdir.folder / "tools"))
        cell = CellEnvironment(
            cell=record.cell, folder=str(workdir.folder), parts=(), variables=variables
        )
        write_scripts(cell)
    development.save(ready=False)
    return development
