"""Replace this process by a shell, or another command, with a job's view."""

import shlex
from collections.abc import Callable, Sequence

from torchyard.errors import UsageError
from torchyard.host.process import replace_by_sandboxed, replace_process
from torchyard.model.event import Listener
from torchyard.model.quantity import show_count
from torchyard.model.step import Step, placeholders_of
from torchyard.recipes import steps_of
from torchyard.run.job import open_job
from torchyard.run.sandbox import enclose
from torchyard.run.steps import StepContext
from torchyard.workspace.left_job import find_left_job
from torchyard.workspace.locations import copies_limit, open_store
from torchyard.workspace.progress import ignore_line
from torchyard.workspace.run import find_job_spec, job_conditions

_NO_COMMAND = frozenset(":/*")
"""Characters in names of jobs and cells, but not of commands."""


def enter_job(
    job: str | None = None,
    words: Sequence[str] = (),
    *,
    spec: str | None = None,
    file: str = "torchyard.toml",
    changes: Sequence[str] = (),
    store_url: str | None = None,
    work: str | None = None,
    sandbox: str | None = None,
    on_event: Listener,
    on_line: Callable[[str], object] = ignore_line,
) -> None:
    """Restore a job's files unless they exist, and run a command in its directory."""
    if job and _NO_COMMAND.isdisjoint(job):
        words, job = (job, *words), None
    if spec is None:
        planned, config = find_left_job(job, file, work, changes)
    else:
        planned, config = find_job_spec(None, spec, file, changes)
        if planned.task.id != job:
            msg = f"`{spec}` is the spec of {planned.task.id}"
            raise UsageError(msg, hint="name that job")
    conditions = job_conditions(planned, file, work, sandbox)._replace(copies=copies_limit(config))
    context = open_job(planned, open_store(store_url, file, config), conditions, on_event)
    step = Step(run=tuple(words) or ("bash", "--norc"), network=True).filled(context.words())
    env = context.environment() | _introduce(context, on_line)
    env |= {"TERM": "xterm-256color", "PS1": f"{planned.task.id}$ "}
    argv = enclose(context.sandbox, step, context.workdir, None)
    if context.sandbox.kind == "none":
        replace_process(argv, cwd=context.workdir.build, env=env)
    else:
        kind = context.sandbox.kind
        replace_by_sandboxed(argv, cwd=context.workdir.folder, env=env, kind=kind)


def _introduce(context: StepContext, on_line: Callable[[str], object]) -> dict[str, str]:
    """Show the directories and the next step; return that step's variables.

    With these, it can be repeated by hand.
    """
    words = context.words()
    for name in placeholders_of(context.workdir.spec.task.stage):
        if words[name].startswith(words["work"]):
            on_line(f"{{{name}}} is {words[name]}")
    steps, done = steps_of(context.workdir.spec), len(context.workdir.state().steps)
    if done >= len(steps):
        return {}
    following = steps[done].filled(words)
    command = shlex.join(following.run)
    on_line(f"{done} of {show_count(len(steps), 'step')} done; the next is: {command}")
    return following.env
