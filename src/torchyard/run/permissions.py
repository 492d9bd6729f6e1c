"""A machine's permissions: its stages, its sandbox, and which jobs get secrets."""

import os
from collections.abc import Collection, Mapping

from torchyard.errors import HostError, UsageError
from torchyard.host.secrets import taken, taken_for_fetching
from torchyard.host.system_view import is_of_system
from torchyard.model.config import Sandbox, SandboxKind
from torchyard.model.job_spec import JobSpec, Task
from torchyard.model.lock import CONDA
from torchyard.model.recipe import Stage
from torchyard.recipes import runs_only_ours
from torchyard.store.store import Store

STAGES = "TORCHYARD_STAGES"
"""The variable that limits a machine to certain stages."""


SANDBOX = "TORCHYARD_SANDBOX"
"""The variable by which a machine requires a sandbox, whatever a spec or command says."""

ROOTS = "TORCHYARD_ROOTS"
"""The variable with a machine's roots: paths, separated as in `PATH`."""

_STRICTNESS: tuple[SandboxKind, ...] = ("none", "view", "bwrap")


def demanded_sandbox() -> SandboxKind | None:
    """Return the sandbox that this machine requires."""
    text = os.environ.get(SANDBOX)
    if not text:
        return None
    for kind in _STRICTNESS:
        if kind == text:
            return kind
    msg = f"{SANDBOX} is `{text}`, which is not a kind of sandbox"
    raise UsageError(msg, hint=f"the sandboxes are {', '.join(_STRICTNESS)}")


def stricter(kind: SandboxKind, other: SandboxKind | None) -> SandboxKind:
    """Return the stricter one of two sandboxes."""
    return max(kind, other or kind, key=_STRICTNESS.index)


def offered_roots() -> list[str]:
    """Return the roots that this machine offers; if any, jobs run in no others."""
    return [root for root in os.environ.get(ROOTS, "").split(os.pathsep) if root]


def refuse_wider_view(task: Task, sandbox: Sandbox) -> None:
    """Refuse a spec that wants to see more of a machine that requires a sandbox."""
    if sandbox.readable:
        hint = "remove `readable` from [sandbox]"
        raise _refusal(task, "asks to read more paths", hint)
    if sandbox.root is not None and not offered_roots():
        hint = "remove `root` from [toolchain], or start the worker with `--root PATH`"
        raise _refusal(task, "has a root", hint)


def refuse_code_outside(spec: JobSpec) -> None:
    """Refuse a spec that can run its own code outside of the required sandbox.

    The source is fetched, and compilers are asked for their versions, outside of it. Wheels are
    fetched with this user's settings and cache, which programs of a conda channel could reach.
    """
    task = spec.task
    if any(t.table(CONDA) for t in spec.tasks) and any(t.words("requires") for t in spec.tasks):
        hint = "write `requires = []` in [build], and name conda packages in `host`"
        raise _refusal(task, "requires wheels in conda environments", hint)
    if runs_only_ours(task) and (env := task.table("env")):
        hint = f"remove `env` for stage `{task.stage}` from overrides"
        raise _refusal(task, f"sets {', '.join(env)} of a job outside of it", hint)
    if any(map(names_own_compiler, spec.tasks)):
        what = "names a compiler that is not the system's"
        raise _refusal(task, what, "set `compiler` of [toolchain] to a name, such as gcc-12")


def names_own_compiler(task: Task) -> bool:
    """Return whether a job's compiler is a path outside of the system's directories."""
    compiler = task.table("toolchain").get("compiler", "")
    return "/" in compiler and not is_of_system(compiler)


def _refusal(task: Task, what: str, hint: str) -> HostError:
    msg = f"this machine refuses {task.id}: it requires its own sandbox, but the spec {what}"
    return HostError(msg, hint=hint)


def secrets_for(stage: Stage, store: Store) -> Mapping[str, str]:
    """Return the secrets for a job's process: all if it publishes or its store is in a bucket.

    Others get secrets of proxies and indexes. Only steps of a publish job see any: for buckets.
    """
    if stage is Stage.PUBLISH or store.objects.folder is None:
        return taken()
    return taken_for_fetching()


def parse_stages(text: str) -> frozenset[Stage]:
    """Read `core,bindings`."""
    try:
        return frozenset(Stage(word.strip()) for word in text.split(","))
    except ValueError as error:
        msg = f"`{text}` is not a list of stages: {error}"
        raise UsageError(msg, hint=f"the stages are {', '.join(Stage)}") from error


def refuse_other_stages(task: Task, stages: Collection[Stage]) -> None:
    """Refuse a job of a stage that this machine does not run; retries would not help."""
    if task.stage not in stages:
        does = ", ".join(stage for stage in Stage if stage in stages)
        msg = f"this machine refuses {task.id}: it does {does}, not {task.stage}"
        hint = f"send it to another machine; --stages or {STAGES} says which stages this one runs"
        raise HostError(msg, hint=hint)
