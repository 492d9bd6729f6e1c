"""`torchyard ci pins`: the newest releases of actions."""

import click

from torchyard.terminal.console import write


@click.command("pins")
@click.option("--host", metavar="URL", help="Where the repositories of actions are.")
def command(*, host: str | None) -> None:
    """Print [ci.actions] with the newest release of each action, by the hash of its commit.

    Put it into the file to use these in place of the pins that come with torchyard, after a look at
    what has changed.
    """
    from torchyard.app.ci import newest_pins
    from torchyard.config.tables import dump

    write(dump({"actions": newest_pins("github", host)}, "", "ci"))
