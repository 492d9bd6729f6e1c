"""`torchyard init`: write a first torchyard.toml."""

from functools import partial

import click

from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.output import calls
from torchyard.errors import UsageError


def _words(_: click.Context, option: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values of a repeatable option, which may contain commas."""
    found = tuple(word.strip() for text in given for word in text.split(",") if word.strip())
    if given and not found:
        msg = f"--{option.name}: it is empty"
        raise UsageError(msg)
    return found


_several = partial(click.option, multiple=True, callback=_words)


@in_section(HelpSection.START)
@click.command("init")
@click.option("-f", "--file", metavar="FILE", default="torchyard.toml", help="File to write.")
@click.option("--recipe", metavar="NAME", help="Kind of project: pytorch, extension or conda.")
@click.option("--name", help="Name of the distribution.")
@click.option("--version", help="Version to build.")
@click.option("--git", help="Repository of the source.")
@click.option("--rev", help="Commit or tag to build.")
@click.option("--path", help="Directory of the source, instead of a repository.")
@click.option("--sdist", metavar="NAME==VERSION", help="Sdist of an extension, from an index.")
@click.option("--feedstock", metavar="DIR", help="Feedstock whose conda recipe to run.")
@_several("--platform", help="Platforms, comma-separated.")
@_several("--compute", help="Compute platforms, comma-separated.")
@_several("--python", help="Pythons, comma-separated.")
@_several("--package", help="Kinds of packages, comma-separated.")
@_several("--torch", help="Torch releases to compile against, comma-separated.")
@click.option("--glibc", metavar="VERSION", help="Oldest glibc of an extension's users: 2.28.")
@click.option("--image", metavar="NAME", help="Image to build in; default: one for --glibc.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@calls("write_first_file")
def command() -> None:
    """Write a small, commented torchyard.toml.

    Other values come from the source of the project, which is read but not run, or are defaults;
    the output and the file say why. Values are separated by commas, or given by repeated options.
    """
