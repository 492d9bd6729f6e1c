"""`torchyard init`: write a first torchyard.toml."""

from functools import partial
from pathlib import Path

import click

from torchyard.config.recipes import known_recipes
from torchyard.errors import HostError, UsageError
from torchyard.host.files import HOME, exists, write_text


def _words(_: click.Context, option: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values of an option, which add up, and can have commas between them."""
    found = tuple(word.strip() for text in given for word in text.split(",") if word.strip())
    if given and not found:
        msg = f"--{option.name}: it is empty"
        raise UsageError(msg)
    return found


_EXCLUDES = {"sdist": ("git", "rev", "path", "name", "version"), "path": ("git", "rev")}
_several = partial(click.option, multiple=True, callback=_words)


@click.command("init")
@click.option("-f", "--file", metavar="FILE", default="torchyard.toml", help="File to write.")
@click.option("--recipe", type=click.Choice(list(known_recipes())), help="Kind of project.")
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
def command(*, file: str, force: bool, **flags: str | tuple[str, ...] | None) -> None:
    """Write a small, commented torchyard.toml.

    What no option says comes from the source of the project, which is read and not run, or is the
    usual; the output and the file say why. Several values are separated by commas, or given by
    the same option again.
    """
    from rich.table import Table

    from torchyard.app.init import start_file
    from torchyard.terminal.console import talk

    if exists(file) and not force:
        msg = f"`{file}` exists already"
        raise HostError(msg, hint="pass --force to replace it")
    given = {key: value for key, value in flags.items() if isinstance(value, str)}
    if empty := [key for key, value in flags.items() if value == ""]:
        msg = f"--{empty[0]}: it is empty"
        raise UsageError(msg)
    for one, others in _EXCLUDES.items():
        if one in given and (both := [name for name in others if name in given]):
            msg = f"--{one} says where the source is: it excludes --{both[0]}"
            raise UsageError(msg)
    lists = {key: value for key, value in flags.items() if isinstance(value, tuple)}
    started = start_file(file, given, lists)
    write_text(file, started.text, replace=force)
    ignore_home(Path(file).parent)
    table = Table.grid(padding=(0, 1))
    for key, note in started.notes.items():
        if note:
            table.add_row(f"{key}:", note)
    talk(*([table] if table.rows else []))
    then = "lock" if started.is_extension else "plan"
    talk(f"wrote {file}; now try: torchyard {then} -f {file}")


def ignore_home(folder: Path) -> None:
    """Let git ignore what torchyard writes beside its file, unless it does."""
    path = folder / ".gitignore"
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    if path.is_symlink() or HOME in (line.strip("/*\r ") for line in text.split("\n")):
        return
    with path.open("a", encoding="utf-8") as file:
        file.write("\n" if text and not text.endswith("\n") else "")
        file.write(f"/{HOME}/\n")
