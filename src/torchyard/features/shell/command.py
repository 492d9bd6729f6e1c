"""`torchyard shell`: look around in a job's directory."""

import click

from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.options import (
    file_option,
    names_argument,
    sandbox_option,
    set_option,
    spec_option,
    store_url_option,
    work_option,
)
from torchyard.cli.output import calls


class _CommandLast(click.Command):
    """A command that runs another, whose options are not its own: `shell JOB ninja -v`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        valued = {o for p in self.params if not getattr(p, "is_flag", True) for o in p.opts}
        is_value, arguments = False, 0
        for index, word in enumerate(args):
            if word == "--":
                break
            arguments += not (is_value or word.startswith("-"))
            if arguments > 1:
                return super().parse_args(ctx, [*args[:index], "--", *args[index:]])
            is_value = not is_value and word in valued
        return super().parse_args(ctx, args)


@in_section(HelpSection.BUILD)
@click.command("shell", cls=_CommandLast)
@names_argument("job", required=False)
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@spec_option
@file_option
@set_option
@store_url_option
@work_option
@sandbox_option
@calls("enter_job")
def command() -> None:
    """Enter a job's work directory, environment and sandbox.

    After a failure, everything is as the failed step left it. The result of a finished job is
    restored, with the build directory of a core. The directory of a running job is not changed.
    COMMAND runs instead of a shell. The default JOB is the last one that runs or failed.
    """
