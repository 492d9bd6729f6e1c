"""The spec in a package: what it may ask for, and what it would run.

A package can come from anywhere, and its spec can contain any command. So it may only build, from a
source to a package, and the user sees the commands before they run.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import msgspec

from torchyard.checks.expected import spec_text
from torchyard.errors import StoreError
from torchyard.model.job_spec import SPEC_FILE, JobSpec, Task
from torchyard.model.recipe import Stage
from torchyard.model.step import OWN, Step, placeholders_of
from torchyard.model.toolchain import is_pinned
from torchyard.model.values import UNDECODABLE
from torchyard.package.read import read_package
from torchyard.recipes import steps_of
from torchyard.run.permissions import names_own_compiler

_STAGES = (Stage.SOURCE, Stage.CORE, Stage.BINDINGS, Stage.PACKAGE)

_ADDRESS = re.compile(
    r"(?:https?|ssh|git|file)://[^\s-]\S*|[\w.][\w.-]*@[\w.][\w.-]*:[^:\s-]\S*|/[^:]*"
)
"""Allowed addresses of git repositories; `ext::COMMAND` and others with `::` run programs."""

_HINT = "torchyard's packages contain it; your own steps can copy {spec} into theirs"


def carried_spec(package: Path) -> JobSpec:
    """Return the spec in a package of any format, if it only builds a package."""
    contents = read_package(package)
    text = spec_text(contents)
    if text is not None:
        try:
            spec = msgspec.json.decode(text, type=JobSpec)
        except UNDECODABLE as error:
            msg = f"the spec that `{package}` carries can't be read: {error}"
            raise StoreError(msg, hint=_HINT) from error
        if why := next(_objections(spec), None):
            msg = f"the spec that `{package}` carries is not followed: {why}"
            raise StoreError(msg, hint="it was not made by torchyard, or was changed since")
        return spec
    for _, member, what in contents.faults:
        msg = f"`{package}` can't be read as a package: {member or 'it'} {what}"
        raise StoreError(msg, hint="`torchyard check` lists what is wrong with it")
    msg = f"`{package}` does not say how it was made: it lacks {SPEC_FILE}"
    raise StoreError(msg, hint=_HINT)


def _objections(spec: JobSpec) -> Iterator[str]:
    """Yield objections to running the spec of a package."""
    known: set[str] = set()
    for task in spec.tasks:
        if task.stage not in _STAGES:
            yield f"{task.id} is no job that builds"
        if not task.is_true:
            yield f"the fingerprint of {task.id} does not match it"
        if not known.issuperset(task.inputs):
            yield f"{task.id} needs inputs that it does not contain"
        known.add(task.fingerprint)
        yield from _source_objections(task)
        yield from _step_objections(task)
        if names_own_compiler(task):
            yield f"`{task.table('toolchain')['compiler']}` is no compiler of the system"
        for name in task.words("requires"):
            if not is_pinned(name):
                yield f"`{name}` is no version of a package to build with"
    if not spec.tasks or spec.task.stage is not Stage.PACKAGE:
        yield "its last job makes no package"


def _step_objections(task: Task) -> Iterator[str]:
    try:
        known = {*placeholders_of(task.stage), *task.facts, "self", "file", "base", "root"}
    except ValueError:
        yield f"{task.id} is no job of stage {task.stage}"
        return
    given = task.settings.get("steps")
    for step in given if isinstance(given, tuple) else ():
        if isinstance(step, Step):
            yield from (f"a step of {task.id} {fault}" for fault in step.faults(known))


def _source_objections(task: Task) -> Iterator[str]:
    source = task.source
    if source is None:
        return
    if source.git is not None and not _ADDRESS.fullmatch(source.git):
        yield f"`{source.git}` is no allowed address of a source"
    if source.commit is not None and source.commit != task.text("commit"):
        yield f"{task.id} would check out another commit than {task.text('commit')}"
    if source.archive is not None and not task.text("sha256"):
        yield f"{task.id} would unpack any archive: it has no sha256"
    if {extra.requested: extra.identity for extra in source.also} != task.table("also"):
        yield f"{task.id} would download other files than {' '.join(task.table('also'))}"
    for extra in source.also:
        if extra.git is not None and not _ADDRESS.fullmatch(extra.git):
            yield f"`{extra.git}` is no allowed address of a source"
    if not set(task.words("series")) <= set(task.table("patches")):
        yield f"{task.id} would apply patches that it does not contain"


def describe_spec(spec: JobSpec) -> Iterator[str]:
    """Yield lines that describe what a spec would run: sources, and the commands of steps."""
    for task in spec.tasks:
        yield f"{task.id}{_origin(task)}"
        if series := task.words("series"):
            yield f"  with the patches {' '.join(series)}"
        for name, value in task.table("toolchain").items():
            yield f"  with {name} {value}"
        if requires := task.words("requires"):
            yield f"  with {' '.join(requires)}"
        for step in steps_of(spec.of(task)):
            network = "  (with network)" if step.network else ""
            first, *rest = _command(step).splitlines() or [""]
            yield f"  + {first}{network}"
            yield from (f"    {line}" for line in rest)


def _origin(task: Task) -> str:
    source = task.source
    if source is None:
        return ""
    if source.path is not None:
        return f"  of the directory {source.path}"
    if source.archive is not None:
        return f"  of the archive {source.archive}"
    if source.debian is not None:
        return f"  of Debian's {source.debian}"
    return f"  of {source.git} at {source.commit or source.rev}"


def _command(step: Step) -> str:
    """Return the command of a step as typed in a shell."""
    words = ("torchyard", *step.run[len(OWN) :]) if step.run[: len(OWN)] == OWN else step.run
    variables = (f"{name}={shlex.quote(value)}" for name, value in step.env.items())
    return " ".join((*variables, shlex.join(words)))
