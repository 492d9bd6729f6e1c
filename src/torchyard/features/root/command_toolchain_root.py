"""`torchyard toolchain root`: systems to build in."""

import click

from torchyard.cli.output import calls


@click.command("root")
@click.argument("suite")
@click.argument("to", metavar="DIR")
@click.option(
    "--with",
    "toolkits",
    metavar="NAME",
    multiple=True,
    help="Toolkit with its libraries, from Debian: cuda or rocm.",
)
@click.option(
    "--component",
    "components",
    metavar="NAME",
    multiple=True,
    help="Component of the archive besides `main`, such as `non-free`.",
)
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
@click.option(
    "--expired",
    is_flag=True,
    help="Take lists of packages that are out of date, as those of snapshots are.",
)
@calls("make_root")
def command() -> None:
    """Make a root: a directory with a Debian system to build in.

    It has a suite, such as `trixie`, with compilers and Python. Set `root` in [toolchain] to it:
    then jobs run in it, and packages depend on its compilers and C library, not the machine's.
    Needs root and debootstrap. The same lock gives a root with the same identity.
    """
