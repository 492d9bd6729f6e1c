"""`torchyard root`: systems to build in."""

from pathlib import Path

import click

from torchyard.errors import UsageError


@click.group("root")
def command() -> None:
    """Make roots: directories with a system of their own, to build in.

    `root` in [toolchain] names one. Jobs then run in it, and packages depend on its compilers and C
    library, not on those of the machine.
    """


@command.command("make")
@click.argument("suite")
@click.argument("to", metavar="DIR")
@click.option("--package", "packages", metavar="NAME", multiple=True, help="Package to install.")
@click.option(
    "--build-dep",
    metavar="NAME",
    multiple=True,
    help="Source package whose build dependencies are installed.",
)
@click.option(
    "--python",
    "pythons",
    metavar="TAG",
    multiple=True,
    help="Python to copy, such as cp312.",
)
@click.option("--lock", metavar="FILE", help="Versions to install; written if it does not exist.")
@click.option("--mirror", metavar="URL", default="", help="Mirror of Debian to take packages from.")
def make_command(
    *,
    suite: str,
    to: str,
    packages: tuple[str, ...],
    build_dep: tuple[str, ...],
    pythons: tuple[str, ...],
    lock: str | None,
    mirror: str,
) -> None:
    """Make a root of a Debian suite, such as `trixie`, with compilers and Python.

    Needs root and debootstrap. With the same lock, the root has the same identity.
    """
    from torchyard.app.root import make_root
    from torchyard.terminal.console import say, write
    from torchyard.toolchain.debian_root import RootRequest

    if suite.startswith("-"):
        msg = f"`{suite}` is no suite of Debian"
        raise UsageError(msg, hint="such as trixie")
    request = RootRequest(suite=suite, packages=packages, build_dep=build_dep, mirror=mirror)
    identity = make_root(
        request, Path(to).absolute(), pythons=pythons, lock=Path(lock) if lock else None, say=say
    )
    write(f"{identity}\n")
