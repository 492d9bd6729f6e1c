"""`torchyard tool`: internal commands for steps of jobs, and for roots."""

import click

from torchyard.cli.lazy_group import LazyGroup


class _Tools(LazyGroup):
    def list_commands(self, _ctx: click.Context) -> list[str]:
        from torchyard.features.tool.functions import tool_modules

        return sorted(tool_modules())

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        from torchyard.features.tool.functions import tool_command

        return tool_command(cmd_name)


@click.group("tool", cls=_Tools, hidden=True)
def command() -> None:
    """Internal commands of recipes' steps."""
