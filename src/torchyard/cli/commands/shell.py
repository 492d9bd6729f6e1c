"""`torchyard shell`: look around where a job works."""

import shlex

import click

from torchyard.cli.options import (
    file_option,
    names_argument,
    sandbox_option,
    set_option,
    store_url_option,
    work_option,
)
from torchyard.errors import UsageError
from torchyard.host.inner_environment import replace_by_sandboxed
from torchyard.host.process import replace_process
from torchyard.model.quantity import show_count
from torchyard.model.step import Step, places_of
from torchyard.recipes import steps_of
from torchyard.run.job import open_job
from torchyard.run.sandbox import enclose
from torchyard.run.steps import StepContext
from torchyard.terminal.console import say
from torchyard.terminal.events import printer
from torchyard.workspace.left_job import find_left_job
from torchyard.workspace.locations import copies_limit, open_store
from torchyard.workspace.run import find_job_spec, job_conditions

_NO_COMMAND = frozenset(":/*")
"""What the name of a job or a cell has, and the name of a command has not."""


@click.command("shell", context_settings={"ignore_unknown_options": True})
@names_argument("job", required=False)
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.option(
    "--order", "order_file", metavar="FILE", help="Take the job from a file that an engine wrote."
)
@file_option
@set_option
@store_url_option
@work_option
@sandbox_option
def command(
    *,
    job: str | None,
    words: tuple[str, ...],
    order_file: str | None,
    file: str,
    changes: tuple[str, ...],
    store_url: str | None,
    work: str | None,
    sandbox: str | None,
) -> None:
    """Enter the work directory of a job, with its inputs, its environment and its sandbox.

    After a failure everything is as the failed step left it; of a job that is finished, the result
    is restored, with the build directory of a core; of one that runs, nothing is changed. COMMAND
    is run instead of a shell. Without a JOB, it is the last one that runs or failed.
    """
    if job and _NO_COMMAND.isdisjoint(job):
        words, job = (job, *words), None
    if order_file is None:
        order, config = find_left_job(job, file, work, changes)
    else:
        order, config = find_job_spec(None, order_file, file, changes)
        if order.task.id != job:
            msg = f"`{order_file}` is the order of {order.task.id}"
            raise UsageError(msg, hint="name that job")
    conditions = job_conditions(order, file, work, sandbox)._replace(copies=copies_limit(config))
    context = open_job(order, open_store(store_url, file, config), conditions, printer(say))
    step = Step(run=words or ("bash", "--norc"), network=True).filled(context.places())
    env = context.environment() | _introduce(context)
    env |= {"TERM": "xterm-256color", "PS1": f"{order.task.id}$ "}
    argv = enclose(context.sandbox, step, context.place, None)
    if context.sandbox.kind == "none":
        replace_process(argv, cwd=context.place.build, env=env)
    else:
        replace_by_sandboxed(argv, cwd=context.place.folder, env=env)


def _introduce(context: StepContext) -> dict[str, str]:
    """Print the directories and the next step; return the variables of that step.

    With these it can be repeated by hand.
    """
    places = context.places()
    for name in places_of(context.place.order.task.stage):
        if places[name].startswith(places["work"]):
            say(f"{{{name}}} is {places[name]}")
    steps, done = steps_of(context.place.order), len(context.place.state().steps)
    if done >= len(steps):
        return {}
    following = steps[done].filled(places)
    command = shlex.join(following.run)
    say(f"{done} of {show_count(len(steps), 'step')} done; the next is: {command}")
    return following.env
