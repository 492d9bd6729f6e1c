"""`torchyard init`: write a first torchyard.toml."""

from functools import partial

import click

from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.output import calls
from torchyard.errors import UsageError


def _words(_: click.Context, option: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values of an option, which add up, and can have commas between them."""
    found = tuple(word.strip() for text in given for word in text.split(",") if word.strip())
    if given and not found:
        msg = f"--{option.name}: it is empty"
        raise UsageError(msg)
    return found


_several = partial(click.option, multiple=True, callback=_words)


@in_section(HelpSection.START)
@click.command("init")
@click.option("-f", "--file", metavar="FILE", default="torchyard.toml", help="File to write.")
@click.option("--recipe", metavar="NAME", help="Kind of project: pytorch or extension.")
@click.option("--name", help="Name of the distribution.")
@click.option("--version", help="Version to build.")
@click.option("--git", help="Repository of the source.")
@click.option("--rev", help="Commit or tag to build.")
@click.option("--path", help="Directory of the source, instead of a repository.")
@click.option("--sdist", metavar="NAME==VERSION", help="Sdist of an extension, from an index.")
@_several("--platform", help="A platform, or several.")
@_several("--compute", help="A compute platform, or several.")
@_several("--python", help="A Python, or several.")
@_several("--package", help="A kind of package, or several.")
@_several("--torch", help="A torch release to compile against, or several.")
@click.option("--glibc", metavar="VERSION", help="Oldest glibc of an extension's users: 2.28.")
@click.option("--image", metavar="NAME", help="Image to build in; default: one for --glibc.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@calls("write_first_file")
def command() -> None:
    """Write a small, commented torchyard.toml.

    What no option says comes from the source of the project, which is read and not run, or is the
    usual; the output and the file say why. Several values are separated by commas, or given by
    the same option again.
    """
