"""`torchyard snapshot`: what the source stage runs."""

from pathlib import Path

import click

from torchyard.errors import UsageError
from torchyard.host.snapshot import check_out, copy_folder


@click.command("snapshot", hidden=True)
@click.option("--to", required=True, help="Directory to fill.")
@click.option("--path", help="Directory to copy.")
@click.option("--digest", default="", help="What the directory must contain.")
@click.option("--leave-out", multiple=True, help="File that is no part of the source.")
@click.option("--git", "url", help="Repository to check out from.")
@click.option("--rev", default="", help="Commit to check out.")
@click.option("--debian", help="Source package of Debian, as `name=version`.")
@click.option("--root", default="", help="Root whose apt gets it.")
@click.option("--submodules/--no-submodules", default=True, help="Take submodules along.")
def command(
    *,
    to: str,
    path: str | None,
    digest: str,
    leave_out: tuple[str, ...],
    url: str | None,
    rev: str,
    debian: str | None,
    root: str,
    submodules: bool,
) -> None:
    """Take a snapshot of a directory, a commit or a source package."""
    if path is not None:
        copy_folder(Path(path), digest, Path(to), leave_out)
    elif url is not None:
        check_out(url, rev, Path(to), submodules=submodules)
    elif debian is not None:
        from torchyard.toolchain.debian_root import get_source

        get_source(root, debian, Path(to))
    else:
        msg = "a snapshot of what?"
        raise UsageError(msg, hint="give --path, --git or --debian")
