"""`torchyard develop`: edit, build and import a project, starting from a finished core."""

import click

from torchyard.cli.lazy_group import HelpSection, LazyGroup, in_section
from torchyard.cli.options import file_option, selector_argument, set_option, store_url_option
from torchyard.cli.output import calls, reports
from torchyard.terminal.console import say, show

cell_option = click.option(
    "--cell", metavar="SELECTOR", help="The tree of this cell, if there are several."
)


class _Develop(LazyGroup):
    """A group whose first word is a subcommand or a cell."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        word = next((arg for arg in args if not arg.startswith("-")), None)
        known = word in self.commands or any(arg in ("-h", "--help") for arg in args)
        return super().parse_args(ctx, args if known else ["begin", *args])


@in_section(HelpSection.BUILD)
@click.group("develop", cls=_Develop)
def command() -> None:
    """Edit and rebuild a project in a tree that starts from a core.

    `torchyard develop SELECTOR` is `torchyard develop begin SELECTOR`.
    """


@command.command("begin")
@selector_argument
@click.option("--from-store", is_flag=True, help="Fail if the store has no finished core.")
@click.option(
    "--source",
    "tree",
    metavar="DIR",
    help="Work in this checkout, instead of a copy of the source.",
)
@file_option
@set_option
@store_url_option
def develop_begin(
    *,
    words: tuple[str, ...],
    from_store: bool,
    tree: str | None,
    file: str,
    changes: tuple[str, ...],
    store_url: str | None,
) -> None:
    """Lay out a tree of a cell, and make Python import from it.

    Files are restored from the core in the store, with their times, so that ninja does not compile
    the core again; a missing core is built first. Another run continues, and prints the tree.
    SELECTOR selects a single Python of a block, such as cpu-mkl/cp312.
    """
    from torchyard.features.develop.report import start_text
    from torchyard.features.develop.use_case import request_development, start_development
    from torchyard.terminal.events import printer

    request = request_development(file, words, changes=changes, store=store_url, tree=tree)
    if not from_store and request.find_core() is None:
        _build_core(file, changes, store_url, request.core.id)
    begun = start_development(request, printer(say), say)
    show(*start_text(begun))


@command.command("build")
@click.argument("targets", nargs=-1, metavar="[TARGET]...")
@click.option("-j", "--slots", "jobs", type=click.IntRange(min=1), help="Compilers to run at once.")
@cell_option
@file_option
@reports("build_development")
def develop_build() -> None:
    """Compile edited files, and show what was made and why.

    With targets of ninja, only these are made, and nothing is installed.
    """


@command.command("run", context_settings={"allow_interspersed_args": False})
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@cell_option
@file_option
@calls("enter_development")
def develop_run() -> None:
    """Run a command, or a shell, in the tree as compilers see it.

    Tests, debuggers and ninja work there: paths in the build directory are valid.
    """


def _build_core(file: str, changes: tuple[str, ...], store_url: str | None, core: str) -> None:
    """Build the core that a development starts from."""
    from torchyard.cli.build_display import show_build
    from torchyard.workspace.build import prepare_build
    from torchyard.workspace.build_request import BuildRequest

    say(f"the store has no finished {core}: builds it first")
    build = prepare_build(BuildRequest(file, changes, select=(core,), store=store_url))
    show_build(build)
