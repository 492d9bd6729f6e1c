"""`torchyard which`: the package of a channel that fits a machine."""

from typing import TYPE_CHECKING

import click
from click.decorators import FC
from packaging.requirements import Requirement

from torchyard.cli.options import channel_argument, file_option, json_option
from torchyard.compute.platform import MachineFact
from torchyard.compute.registry import compute_in, compute_platforms
from torchyard.config.tables import load_tables
from torchyard.errors import SelectionError, UsageError
from torchyard.index.sections import SECTIONS
from torchyard.model.requirement import MALFORMED
from torchyard.terminal.console import show, write
from torchyard.workspace.arguments import check_name
from torchyard.workspace.locations import installer_url, read_channel

if TYPE_CHECKING:
    from torchyard.compute.installed_torch import InstalledTorch
    from torchyard.publish.resolve.compatibility import MachineFacts
    from torchyard.publish.resolve.resolve import Resolution

_ANY = "any"


def _gpu_facts() -> list[MachineFact]:
    platforms = compute_platforms(plug_ins=True)
    return [fact for platform in platforms for fact in platform.facts]


def _gpu_options(function: FC) -> FC:
    """Add an option for each fact about GPUs that a compute platform asks for."""
    for fact in reversed(_gpu_facts()):
        metavar = None if fact.is_flag else "V"
        option = click.option(
            f"--{fact.option}", metavar=metavar, is_flag=fact.is_flag, help=fact.help
        )
        function = option(function)
    return function


@click.command("which")
@channel_argument
@click.argument("project", metavar="PROJECT[SPEC]")
@file_option
@click.option("--python", metavar="TAG", help="For this Python, such as cp312 or cp313t.")
@click.option(
    "--torch",
    metavar="V",
    help="For this torch, such as 2.13 or 2.13.0+cu130; any: for one that is installed with it.",
)
@click.option("--platform", metavar="NAME", help="For this platform, such as linux-x86_64.")
@click.option("--glibc", metavar="V", help="For a system with this glibc.")
@_gpu_options
@click.option("--cpu", "no_gpu", is_flag=True, help="For a machine without any GPU.")
@click.option(
    "--kind",
    type=click.Choice([section.PACKAGE for section in SECTIONS.values()]),
    default=next(iter(SECTIONS.values())).PACKAGE,
    show_default=True,
    help="Format of the package.",
)
@click.option("--url", metavar="URL", help="Where readers find the channel, for the command.")
@json_option
def command(
    *,
    channel: str,
    project: str,
    file: str,
    kind: str,
    url: str | None,
    as_json: bool,
    **facts: str | None,
) -> None:
    """Find the package of CHANNEL to install, the command for it, and why no other one fits.

    Without options it is the package for this machine, and for the Python and the torch of the
    activated environment; without one, for the Python that runs torchyard.
    """
    from torchyard.publish.resolve.resolve import find_package, install_commands
    from torchyard.reports.which.document import which_document
    from torchyard.reports.which.text import which_report
    from torchyard.terminal.json_output import encode

    try:
        wanted = Requirement(project)
    except MALFORMED as error:
        msg = f"`{project}` is not a project with versions"
        raise UsageError(msg, hint="write torch, torch==2.14.0 or 'torch>=2.14'") from error
    place = read_channel(channel, file)
    answer = find_package(place, wanted, kind, _facts(facts), load_tables())
    typed = install_commands(answer, (url or installer_url(place.url)).rstrip("/"))
    document = which_document(answer, place.url, typed)
    if as_json:
        write(encode(document))
    else:
        show(which_report(document))
        write("".join(f"{line}\n" for line in typed.values()))  # to be copied, so never wrapped
    if answer.has_wrong_torch:
        raise _wrong_torch(answer)
    if answer.choice is None:
        msg = f"no {kind} of `{project}` in the channel fits"
        raise SelectionError(msg, hint="other facts may: see `torchyard which --help`")


def _wrong_torch(answer: "Resolution") -> SelectionError:
    """Return the error for a torch that no package is for."""
    from torchyard.publish.resolve.resolve import torch_command

    facts = answer.facts
    own = f"torch {facts.torch}" + (f" for {facts.torch_compute}" if facts.torch_compute else "")
    there = ", ".join(map(str, answer.torches))
    msg = f"no {answer.kind} of `{answer.project}` is for {own}; there are some for torch {there}"
    hint = (
        f"install one of these, by `{torch_command(answer)}` for instance; or build it for "
        "yours, by `torchyard build here` in a directory with its torchyard.toml"
    )
    return SelectionError(msg, hint=hint)


def _facts(given: dict[str, str | None]) -> "MachineFacts":
    """Return the facts given on the command line; others are detected on this machine.

    Those of the environment count only if neither Python nor platform are those of another one.
    """
    from torchyard.compute.installed_torch import active_python, read_environment
    from torchyard.host import machine
    from torchyard.publish.resolve.compatibility import MachineFacts

    tables = load_tables()
    platform = given["platform"] or machine.platform_name()
    here = platform == machine.platform_name()
    own = read_environment(active_python()) if here and not given["python"] else None
    python = given["python"] or (own.python if own else machine.python_name())
    check_name(platform, tables.platforms, "platform")
    check_name(python, tables.pythons, "Python")
    torch, torch_compute = _torch(given["torch"], own.torch if own else None)
    known = _gpu_facts()
    gpu = {fact.option: str(given[fact.option]) for fact in known if given[fact.option]}
    if given["no_gpu"] and gpu:
        msg = f"--cpu and --{next(iter(gpu))} can't be had together"
        raise UsageError(msg, hint="--cpu is for machines without any GPU")
    _check_number("glibc", given["glibc"], least=2)
    for fact in known:
        if not fact.is_flag:
            _check_number(fact.option, given[fact.option], least=1)
    if here and not gpu and not given["no_gpu"]:
        for one in compute_platforms(plug_ins=True):
            gpu |= one.detect()
    return MachineFacts(
        python=python,
        platform=platform,
        glibc=given["glibc"] or (machine.glibc_version() if here else ""),
        gpu=gpu,
        torch=torch,
        torch_compute=torch_compute,
    )


def _torch(given: str | None, installed: "InstalledTorch | None") -> tuple[str, str]:
    """Return the version and the compute of the torch that is given, or else installed."""
    from packaging.version import InvalidVersion, Version

    if given == _ANY:
        return "", ""
    if given is None:
        return (installed.version, installed.compute) if installed else ("", "")
    try:
        version = Version(given)
    except InvalidVersion as error:
        msg = f"`--torch {given}` is not a version"
        hint = f"write 2.13, 2.13.0 or 2.13.0+cu130, or {_ANY} for one that is yet to be installed"
        raise UsageError(msg, hint=hint) from error
    return version.public, compute_in(version.local or "")


def _check_number(option: str, value: str | None, least: int) -> None:
    parts = value.split(".") if value else []
    if value and not (len(parts) >= least and all(part.isdecimal() for part in parts)):
        msg = f"`--{option} {value}` is not a version"
        raise UsageError(msg, hint="write numbers with dots between, such as 13.0")
