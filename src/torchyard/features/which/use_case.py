"""Find the package of a channel that fits a machine."""

from collections.abc import Mapping

from packaging.requirements import InvalidRequirement
from packaging.version import InvalidVersion, Version

from torchyard.compute.installed_torch import InstalledTorch, active_python, read_environment
from torchyard.compute.registry import compute_in, compute_platforms, machine_facts
from torchyard.config.tables import load_tables
from torchyard.errors import UsageError
from torchyard.features.which.report import ChosenPackage, OtherPackage, WhichReport
from torchyard.host import machine
from torchyard.index.entry import Entry
from torchyard.index.sections import SECTIONS
from torchyard.model.requirement import parse_requirement
from torchyard.publish.resolve.compatibility import MachineFacts
from torchyard.publish.resolve.resolve import find_package, install_commands, torch_command
from torchyard.workspace.arguments import check_name
from torchyard.workspace.locations import installer_url, read_channel

_ANY = "any"


def find_fitting(
    channel: str,
    project: str,
    *,
    kind: str = "",
    url: str | None = None,
    file: str = "torchyard.toml",
    **facts: str | None,
) -> WhichReport:
    """Find the package of a channel to install, and reasons against others.

    Args:
        channel: The channel: its name in the file, its address or its directory.
        project: The project, with or without versions: `torch>=2.14`.
        kind: The format of the package; by default that of a channel's first section.
        url: The address of the channel for users, for the install command.
        file: The configuration that names channels.
        **facts: Facts of the machine; others are detected.
    """
    try:
        wanted = parse_requirement(project)
    except InvalidRequirement as error:
        msg = f"`{project}` is not a project with versions"
        raise UsageError(msg, hint="write torch, torch==2.14.0 or 'torch>=2.14'") from error
    kinds = [section.PACKAGE for section in SECTIONS.values()]
    kind = kind or kinds[0]
    check_name(kind, kinds, "format of packages")
    opened = read_channel(channel, file)
    answer = find_package(opened, wanted, kind, _facts(facts), load_tables())
    typed = install_commands(answer, (url or installer_url(opened.url)).rstrip("/"))
    return WhichReport(
        channel=opened.url,
        project=answer.project,
        kind=answer.kind,
        facts=answer.facts,
        choice=_chosen(answer.choice, typed) if answer.choice else None,
        others=[
            OtherPackage(
                file=other.entry.file,
                version=other.entry.version,
                variant=other.entry.variant,
                reason=other.misfit.reason,
                why=other.misfit.why,
            )
            for other in answer.others
        ],
        notes=answer.notes,
        torches=[str(torch) for torch in answer.torches] if answer.has_wrong_torch else [],
        torch_command=torch_command(answer) if answer.has_wrong_torch else "",
    )


def _chosen(entry: Entry, typed: Mapping[str, str]) -> ChosenPackage:
    return ChosenPackage(
        file=entry.file,
        version=entry.version,
        variant=entry.variant,
        sha256=entry.sha256,
        size=entry.size,
        commands=dict(typed),
    )


def _facts(given: Mapping[str, str | None]) -> MachineFacts:
    """Return the facts given on the command line; others are detected on this machine.

    Those of the environment only count if neither another Python nor another platform is given.
    """
    tables = load_tables()
    platform = given["platform"] or machine.platform_name()
    here = platform == machine.platform_name()
    own = read_environment(active_python()) if here and not given["python"] else None
    python = given["python"] or (own.python if own else machine.python_name())
    check_name(platform, tables.platforms, "platform")
    check_name(python, tables.pythons, "Python")
    torch, torch_compute = _torch(given["torch"], own.torch if own else None)
    known = machine_facts()
    gpu = {fact.option: str(given[fact.option]) for fact in known if given[fact.option]}
    if given["no_gpu"] and gpu:
        msg = f"--cpu and --{next(iter(gpu))} exclude each other"
        raise UsageError(msg, hint="--cpu is for machines without a GPU")
    _check_number("glibc", given["glibc"], least=2)
    for fact in known:
        if not fact.is_flag:
            _check_number(fact.option, given[fact.option], least=1)
    if here and not gpu and not given["no_gpu"]:
        for compute in compute_platforms(plug_ins=True):
            gpu |= compute.detect()
    return MachineFacts(
        python=python,
        platform=platform,
        glibc=given["glibc"] or (machine.glibc_version() if here else ""),
        gpu=gpu,
        torch=torch,
        torch_compute=torch_compute,
    )


def _torch(given: str | None, installed: InstalledTorch | None) -> tuple[str, str]:
    """Return the version and compute of the given or installed torch."""
    if given == _ANY:
        return "", ""
    if given is None:
        return (installed.version, installed.compute) if installed else ("", "")
    try:
        version = Version(given)
    except InvalidVersion as error:
        msg = f"`--torch {given}` is not a version"
        hint = f"write 2.13, 2.13.0 or 2.13.0+cu130, or {_ANY} for one to be installed"
        raise UsageError(msg, hint=hint) from error
    return version.public, compute_in(version.local or "")


def _check_number(option: str, value: str | None, least: int) -> None:
    parts = value.split(".") if value else []
    if value and not (len(parts) >= least and all(part.isdecimal() for part in parts)):
        msg = f"`--{option} {value}` is not a version"
        raise UsageError(msg, hint="write numbers with dots between, such as 13.0")
