"""`torchyard init`: write a first torchyard.toml."""

import sys
from pathlib import Path

import click

from torchyard.cli.options import file_option
from torchyard.config.starter import Answers, starter
from torchyard.config.tables import load_tables
from torchyard.host.files import write_text
from torchyard.host.machine import platform_name, python_name
from torchyard.model.recipe import RECIPES
from torchyard.report.console import talk


@click.command("init")
@file_option
@click.option("--recipe", type=click.Choice(list(RECIPES)), help="Kind of project.")
@click.option("--name", help="Name of the distribution.")
@click.option("--version", help="Version to build.")
@click.option("--git", help="Repository of the source.")
@click.option("--rev", help="Commit or tag to build.")
@click.option("--platform", help="Platforms, with commas between them.")
@click.option("--compute", help="Compute platforms, with commas between them.")
@click.option("--python", help="Pythons, with commas between them.")
@click.option("--package", help="Package kinds, with commas between them.")
@click.option("--torch", help="Torch release to take pins from or to compile against.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def command(*, file: str, force: bool, **flags: str | None) -> None:
    """Write a small, commented torchyard.toml.

    Asks for what no flag says; without a terminal, takes the defaults.
    """
    tables = load_tables()
    newest = list(tables.releases)[-1]
    recipe = _ask(flags, "recipe", "pytorch", "Kind of project (pytorch, extension)")
    extension = recipe == "extension"
    name = _ask(flags, "name", Path.cwd().name if extension else "torch", "Name")
    version = _ask(flags, "version", "0.1.0" if extension else f"{newest}.0", "Version")
    where = (
        f"https://github.com/{name}/{name}" if extension else "https://github.com/pytorch/pytorch"
    )
    answers = Answers(
        recipe=recipe,
        name=name,
        version=version,
        git=_ask(flags, "git", where, "Git repository"),
        rev=_ask(flags, "rev", f"v{version}", "Commit or tag"),
        platform=_words(_ask(flags, "platform", platform_name(), "Platforms")),
        compute=_words(_ask(flags, "compute", "cpu", "Compute (cpu, cu130, rocm7.2, …)")),
        python=_words(_ask(flags, "python", python_name(), "Pythons")),
        package=_words(_ask(flags, "package", "wheel", "Packages (wheel, conda, …)")),
        torch=_ask(flags, "torch", newest, "Torch release")
        if extension
        else flags["torch"] or newest,
    )
    write_text(file, starter(answers, tables), replace=force)
    talk(f"wrote {file}; now try: torchyard plan -f {file}")


def _ask(flags: dict[str, str | None], key: str, default: str, question: str) -> str:
    """Take a flag's value, or ask at a terminal, or take the default."""
    given = flags[key]
    if given is not None:
        return given
    if not sys.stdin.isatty():
        return default
    return str(click.prompt(question, default=default, err=True))


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())
