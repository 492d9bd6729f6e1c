"""`torchyard repair`: change tags, version or libraries of a package, and nothing else."""

import gc
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from torchyard.app.repair import repair_packages
from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.options import json_option, policy_option
from torchyard.errors import UsageError
from torchyard.package.repair.operations import (
    EVERYWHERE,
    Bundle,
    Operation,
    ReplaceNeeded,
    Retag,
    Reversion,
    SetRpath,
    Strip,
)
from torchyard.package.repair.repair import new_name
from torchyard.package.wheel.platform_tags import refuse_unknown_platforms
from torchyard.reports.repair.text import repair_report
from torchyard.terminal.console import show, write
from torchyard.terminal.progress import ProgressLine

if TYPE_CHECKING:
    from torchyard.reports.check.document import CheckDocument

_NONE = "none"
_POLICY = "policy"


@in_section(HelpSection.VERIFY)
@click.command("repair")
@click.argument(
    "packages",
    nargs=-1,
    required=True,
    metavar="PACKAGE…",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory for the new packages; files of the same name are replaced.",
)
@click.option("--version", metavar="VERSION", help="A whole new version: 2.13.1, 2.13.0+cu130.")
@click.option("--local", metavar="WORD", help="What follows the version's +: cu130; or none.")
@click.option("--python-tag", default="", metavar="TAG", help="The wheel's first tag: cp312.")
@click.option("--abi-tag", default="", metavar="TAG", help="Its second tag: cp312, abi3.")
@click.option(
    "--platform-tag", default="", metavar="TAG", help="Its third tag: manylinux_2_28_x86_64."
)
@click.option(
    "--rpath",
    metavar="DIRS",
    help="Where libraries look for others: $ORIGIN:$ORIGIN/lib; or policy, what is usual for such "
    "a package, and what they need besides.",
)
@click.option(
    "--needed",
    multiple=True,
    metavar="OLD=NEW",
    help="Need NEW in place of OLD. `OLD=` needs it no longer, `=NEW` one more.",
)
@click.option("--strip", is_flag=True, help="Take debug information out, and keep it beside.")
@click.option(
    "--members",
    multiple=True,
    metavar="GLOB",
    help="Use --rpath, --needed and --strip on these only: torch/lib/*.so.",
)
@click.option(
    "--bundle",
    multiple=True,
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Bring libraries along that are needed, missing, and in this directory.",
)
@click.option(
    "--compute",
    default="",
    metavar="NAME",
    help="What it is compiled for, if neither its version nor what it needs says so: cu130.",
)
@policy_option
@click.option(
    "--no-check", is_flag=True, help="Do not check what was made, and write it even if it is worse."
)
@json_option
def command(
    *,
    packages: tuple[Path, ...],
    output: Path,
    version: str | None,
    local: str | None,
    python_tag: str,
    abi_tag: str,
    platform_tag: str,
    rpath: str | None,
    needed: tuple[str, ...],
    strip: bool,
    members: tuple[str, ...],
    bundle: tuple[Path, ...],
    compute: str,
    policy_name: str,
    no_check: bool,
    as_json: bool,
) -> None:
    """Change tags, version or libraries of wheels and zips.

    Files that do not change are copied as they are. Packages are never changed in place: the new
    ones are checked like by `torchyard check`, and written to another directory unless one has more
    errors than before. The same package and options give the same bytes.
    """
    globs = members or EVERYWHERE
    operations = [
        *_labels(version, local, Retag(python=python_tag, abi=abi_tag, platform=platform_tag)),
        *([Strip(members=globs)] if strip else []),
        *_rpaths(rpath, globs),
        *(_replaced(text, globs) for text in needed),
        *([Bundle(folders=bundle)] if bundle else []),
    ]
    if not operations:
        msg = "there is nothing to repair"
        raise UsageError(msg, hint="say what to change, such as --local cu130 or --rpath policy")
    if members and not (strip or needed or rpath is not None):
        msg = "--members has no effect without --rpath, --needed or --strip"
        raise UsageError(msg, hint="say what to do with them")
    _refuse_twins(packages, operations)
    gc.disable()  # packages have many members, and none of them is garbage
    policy = None if no_check else policy_name
    made, found = repair_packages(
        packages, operations, output, compute=compute, policy=policy, meter=ProgressLine
    )
    if as_json:
        from torchyard.reports.repair.document import repair_document
        from torchyard.terminal.json_output import encode

        write(encode(repair_document(zip(packages, made, strict=True), found)))
    else:
        for repaired in made:
            write(repair_report(repaired))
    if found:
        _conclude(found, as_json=as_json)


def _conclude(found: "CheckDocument", *, as_json: bool) -> None:
    """Print what the check of the new packages found, and fail if there are errors."""
    from torchyard.app.check import refuse_errors

    if not as_json:
        from torchyard.reports.check.text import check_report

        write("\n")
        show(check_report(found))
    refuse_errors(found)


def _labels(version: str | None, local: str | None, tags: Retag) -> Iterator[Operation]:
    if version is not None and local is not None:
        msg = "--version and --local contradict each other"
        raise UsageError(msg, hint="--version 2.13.0+cu130 says both")
    if version is not None or local is not None:
        yield Reversion(version=version, local="" if local == _NONE else local)
    if tags.platform:
        refuse_unknown_platforms(tags.platform)
    if tags != Retag():
        yield tags


def _rpaths(rpath: str | None, globs: tuple[str, ...]) -> Iterator[Operation]:
    if rpath is not None:
        yield SetRpath(value=None if rpath == _POLICY else rpath, members=globs)


def _replaced(text: str, globs: tuple[str, ...]) -> Operation:
    old, equals, new = text.partition("=")
    if not equals or not (old or new):
        msg = f"`--needed {text}` does not tell which library replaces which"
        raise UsageError(msg, hint="write OLD=NEW; OLD= to need it no longer, =NEW for one more")
    if not old and globs == EVERYWHERE:
        msg = f"`--needed {text}` would make every library need one more"
        raise UsageError(msg, hint="name those that shall: --members torch/lib/libtorch_cpu.so")
    return ReplaceNeeded(old=old, new=new, members=globs)


def _refuse_twins(packages: Iterable[Path], operations: Sequence[Operation]) -> None:
    """Refuse two packages that would get the same name, before anything is written."""
    seen: dict[str, Path] = {}
    for package in packages:
        name = new_name(package.name, operations)
        if seen.setdefault(name, package) is not package:
            msg = f"`{seen[name]}` and `{package}` would both become `{name}`"
            raise UsageError(msg, hint="repair them one by one, into two directories")
