"""How and where a job runs, and its resulting sandbox."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from torchyard.compute.registry import compute_platforms, platform_for
from torchyard.errors import ElsewhereError, HostError
from torchyard.host.decisions import decided
from torchyard.host.fixed_path import fixed_path_fault
from torchyard.host.network_settings import network_settings
from torchyard.host.system_view import sandbox_cure, sandbox_fault, without_sandbox
from torchyard.model.config import Sandbox, SandboxKind
from torchyard.model.event import Listener, Noted
from torchyard.model.job_spec import JobSpec, Task
from torchyard.model.lock import CONDA
from torchyard.model.recipe import Stage
from torchyard.model.recipe_output import RECIPE_CHANNELS
from torchyard.model.step import words_in_braces
from torchyard.recipes import compiles_by_recipe, runs_only_ours, steps_of
from torchyard.recipes.proof import recipe_channels
from torchyard.run.environment import without_programs
from torchyard.run.permissions import (
    offered_roots,
    refuse_code_outside,
    refuse_wider_view,
    stricter,
)
from torchyard.run.sandbox import Enclosure, refuse_open_root, tool_paths, tools_path
from torchyard.run.workdir import WorkDir
from torchyard.store.local_cache import LocalCache
from torchyard.store.store import Store

_GPUS = ("nvidia*", "kfd", "dri")

_HIDDEN = ("work", "store", "builds")
"""Directories of torchyard's own beside a configuration file."""

COPIES = "copies"
"""The directory, beside the jobs' own, that caches files of the store."""


class Conditions(NamedTuple):
    """How and where a job runs; none of this changes its result."""

    work: Path
    file: str
    slots: str | None = None
    sandbox: Sandbox = Sandbox()
    demanded: SandboxKind | None = None
    wait: bool = True
    keep: bool = False
    cache: str | None = None
    copies: int = 0
    foreign: bool = False
    """Whether the spec is from somewhere else: no step runs without a sandbox, or sees the caller's
    variables."""

    def kept(self, task: Task) -> LocalCache | None:
        """Return this machine's cache of store files, which leaves a job the disk it needs."""
        spare = task.needs.disk or 0
        return LocalCache(self.work / COPIES, self.copies, spare) if self.copies else None


def with_found_root(conditions: Conditions, spec: JobSpec, kind: SandboxKind) -> Conditions:
    """Return conditions whose root is a directory of this machine, if the job uses one.

    Jobs run in the root, and it fetches Debian's source packages. On a machine that offers roots,
    it is the planned one, at any path; otherwise it is at the file's path.
    """
    asked, task = conditions.sandbox, spec.task
    if lock := _conda_lock(spec):
        root = _conda_root(lock, task, conditions, kind)
        return conditions._replace(sandbox=replace(asked, root=root))
    if asked.root is None or not (kind == "bwrap" or task.text("debian")):
        return conditions
    from torchyard.toolchain.provision import compare  # noqa: PLC0415 - few jobs have a root
    from torchyard.toolchain.root_image import (  # noqa: PLC0415 - as above
        find_root,
        root_identity,
    )

    if conditions.demanded == "bwrap":
        refuse_wider_view(task, asked)
    base = Path(conditions.file).parent
    offered = offered_roots() or [asked.root]
    roots = [find_root(path, base, conditions.work) for path in offered]
    found = dict(zip(map(root_identity, offered, roots), roots, strict=True))
    tables = (other.table("identity") for other in spec.tasks)
    wanted = next((table["root"] for table in tables if "root" in table), None)
    if wanted not in found and (wanted is not None or compiles_by_recipe(task)):
        compare({"root": wanted} if wanted else {}, {"root": "; ".join(found)})
    root = found.get(wanted or "", roots[0])
    return conditions._replace(sandbox=replace(asked, root=root))


def _conda_lock(spec: JobSpec) -> str:
    """Return the lock of the conda environments that a job runs in; empty if there are none.

    Packages are made where their last part was compiled; they are tested on the machine.
    """
    if spec.task.stage not in (Stage.CORE, Stage.BINDINGS, Stage.PACKAGE):
        return ""
    tables = (task.table(CONDA) for task in reversed(spec.tasks))
    return next((lock for table in tables for lock in table.values()), "")


def _conda_root(lock: str, task: Task, conditions: Conditions, kind: SandboxKind) -> str:
    """Return the root of conda environments, which jobs see in a sandbox only."""
    if kind != "bwrap":
        msg = f"{task.id} runs in conda environments, and so in a sandbox of bubblewrap"
        raise HostError(msg, hint='run it with kind = "bwrap" in [sandbox]')
    from torchyard.toolchain.conda_lock import channel_alias  # noqa: PLC0415 - few jobs have one
    from torchyard.toolchain.conda_root import find_conda_root  # noqa: PLC0415 - as above

    if conditions.demanded == "bwrap":  # a spec may not choose what is fetched outside of it
        refuse_wider_view(task, conditions.sandbox)
        return find_conda_root(lock, conditions.work, channel_alias())
    return find_conda_root(lock, conditions.work)


def sandbox_here(asked: Sandbox) -> Sandbox:
    """Return the sandbox on this machine: without the root if this is a container of its image."""
    if asked.root is None:
        return asked
    from torchyard.toolchain.root_image import own_image  # noqa: PLC0415 - few jobs have a root

    return replace(asked, kind=None, root=None) if own_image(asked.root) else asked


def choose_sandbox(spec: JobSpec, conditions: Conditions, on_event: Listener) -> SandboxKind:
    """Return the kind of sandbox for a job: at least the requested and the required one.

    A recipe that compiles needs at least a view: its build tree is restored elsewhere at the same
    path. By default, jobs that share a compile cache get no more, because the cache is outside of
    any sandbox.
    """
    task, asked = spec.task, conditions.sandbox
    if conditions.demanded == "bwrap":
        refuse_code_outside(spec)
    if runs_only_ours(task) and not conditions.foreign:  # they need what a sandbox hides
        return "none"
    kind = asked.kind
    if kind is None:
        kind = "none" if sandbox_fault() else "bwrap"
        if kind == "none" and conditions.demanded != "bwrap":
            on_event(Noted(job=task.id, text=without_sandbox()))
        elif conditions.cache and compiles_by_recipe(task) and spec.compiled.settings.get("cache"):
            kind = "view"
    if kind == "none" and compiles_by_recipe(task):
        kind = "view"
    if conditions.demanded == "bwrap":
        refuse_wider_view(task, asked)
    kind = stricter(kind, conditions.demanded)
    if fault := _fault(kind, conditions.work):
        what = "a sandbox" if kind == "bwrap" else "a directory of the same path everywhere"
        msg = f"{task.id} has to run in {what}, which does not work here: {fault}"
        raise (HostError if kind == "bwrap" else ElsewhereError)(msg, hint=sandbox_cure())
    decided(f"sandbox of {task.id}: {kind}")
    return kind


def _fault(kind: SandboxKind, work: Path) -> str:
    """Return why a kind of sandbox does not work here, or ""."""
    fault = "" if kind == "none" else sandbox_fault(kind)
    if kind == "view" and fault:
        traced = fixed_path_fault(work)
        return traced and f"{fault}; nor without namespaces: {traced}"
    return fault


def enclosure_of(
    kind: SandboxKind,
    workdir: WorkDir,
    conditions: Conditions,
    tools: Mapping[str, str],
    store: Store,
) -> Enclosure:
    """Return the sandbox of a kind: the parts of the machine that steps see."""
    asked, spec = conditions.sandbox, workdir.spec
    plain = _without_toolkits(kind, workdir, asked.root)
    if kind != "bwrap":
        return plain
    base = Path(conditions.file).parent
    own: list[str] = []
    if not conditions.foreign and conditions.demanded != "bwrap":
        own = _channel_directories(spec.task, base)
    if asked.root is not None:
        refuse_open_root(asked.root, workdir)
        return plain._replace(readable=(*asked.readable, *own), devices=_devices(spec.task))
    readable = [*tool_paths(tools, workdir), *asked.readable, *own]
    if spec.task.stage is Stage.PUBLISH and not conditions.foreign:
        readable += filter(None, [network_settings().authorities])
    if not conditions.foreign and _names_base(spec) and Path(conditions.file).exists():
        readable.append(str(base))
    hidden = [str(conditions.work), *(str(base / ".torchyard" / name) for name in _HIDDEN)]
    if store.objects.folder is not None:
        hidden.append(str(store.objects.folder))
    return plain._replace(
        readable=tuple(readable), hidden=tuple(hidden), devices=_devices(spec.task)
    )


def _without_toolkits(kind: SandboxKind, workdir: WorkDir, root: str | None) -> Enclosure:
    """Return a sandbox without toolkits of other compute platforms than the job's.

    Projects that find a toolkit may compile for its GPUs.
    """
    task, system = workdir.spec.task, (root or "") if kind == "bwrap" else ""
    if not compiles_by_recipe(task):
        return Enclosure(kind, root=root)
    own = platform_for(task.facts["compute"]).name
    others = [platform.table().machine for platform in compute_platforms() if platform.name != own]
    folder, seen_as = workdir.folder / "tools", f"{tools_path(kind, workdir)}/tools"
    programs = {name for other in others for name in other.programs}
    return Enclosure(
        kind,
        root=root,
        absent=tuple(path for other in others for path in other.toolkit_paths(system)),
        replaced=without_programs(programs, folder, seen_as, system),
    )


def _names_base(spec: JobSpec) -> bool:
    """Return whether a step names the directory of the configuration file."""
    texts = (text for step in steps_of(spec) for text in (*step.run, step.cwd, *step.env.values()))
    return any(word in ("base", "file") for text in texts for word in words_in_braces(text))


def _channel_directories(task: Task, base: Path) -> list[str]:
    """Return the directories that a job installs from: channels, and a cache of their packages."""
    asked = task.words("channels") if task.stage is Stage.SMOKE else []
    paths = (channel.removeprefix("file://") for channel in (*asked, *recipe_channels(task)))
    found = [base / path for path in paths if "://" not in path]
    if RECIPE_CHANNELS in task.settings and task.stage is not Stage.SMOKE:
        from torchyard.toolchain.conda_packages import packages_folder  # noqa: PLC0415 - as above

        found += filter(None, [packages_folder()])
    return [str(path) for path in found]


def _devices(task: Task) -> tuple[str, ...]:
    """Return the devices for tests of a package: GPUs of its compute platform."""
    if task.stage is not Stage.SMOKE or "compute" not in task.facts:
        return ()
    if not platform_for(task.facts["compute"]).device_nodes:
        return ()
    return tuple(sorted(str(path) for name in _GPUS for path in Path("/dev").glob(name)))
