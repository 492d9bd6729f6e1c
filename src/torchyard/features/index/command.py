"""`torchyard index`: check indexes; show the log of a channel; rewrite its pages; repair it."""

import click

from torchyard.cli.options import channel_argument, file_option, policy_option
from torchyard.cli.output import reports


@click.group("index")
def command() -> None:
    """Check any index, and look after the pages of a channel."""


@command.command("check")
@click.argument("place", metavar="URL|DIR")
@click.option(
    "--project",
    "projects",
    multiple=True,
    metavar="GLOB",
    help="Look only at these projects, or these conda packages.",
)
@click.option(
    "--external",
    multiple=True,
    metavar="GLOB",
    help="Names that are meant to come from elsewhere, such as 'nvidia-*'.",
)
@click.option(
    "--deep", is_flag=True, help="Read every package, and compare it with what the index says."
)
@click.option("--yes", is_flag=True, help="Look at all of a large index without a question.")
@policy_option
@reports("check_index")
def index_check() -> None:
    """Audit a simple index or a conda channel, as an outsider.

    It may be any index: an address with a list of projects, the page of one project, a conda
    channel, or a channel of torchyard with all that is in it (wheels, conda packages and zips);
    on the web or in a directory.

    All of a large index that is not torchyard's own is read only if you agree, as it takes long.
    """


@command.command("log")
@channel_argument
@file_option
@reports("list_changes")
def index_log() -> None:
    """List the changes of CHANNEL, the newest first.

    `torchyard rollback` goes back to any generation that is listed.
    """


@command.command("mend")
@channel_argument
@click.argument("parts", nargs=-1, metavar="[PART]...")
@file_option
@reports("mend_pages")
def index_mend() -> None:
    """Rewrite pages of CHANNEL that are not what they should be.

    A publisher that was killed may leave some. PART is simple/torch, conda/linux-64 or
    libtorch/torch; without any, all pages are checked.
    """


@command.command("repair")
@channel_argument
@click.option("--dry-run", is_flag=True, help="Only print what would be restored.")
@file_option
@reports("restore_channel")
def index_repair() -> None:
    """Restore CHANNEL if its head or states are damaged.

    A damaged head is taken from its copy, or made of the states of its parts. A part whose state is
    damaged shows an earlier one: publish again what was published since. No package is deleted.
    """


@command.command("status")
@channel_argument
@click.argument("project")
@click.argument("status", type=click.Choice(("active", "archived", "quarantined", "deprecated")))
@click.option("--reason", default="", metavar="TEXT", help="The reason, which readers see.")
@file_option
@reports("set_project_status")
def index_status() -> None:
    """Set the status of a PROJECT (PEP 792).

    An archived project takes no new files, a deprecated one is not to be used any more, and the
    files of a quarantined one are hidden until it is active again.
    """
