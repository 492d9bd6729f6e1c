"""The interface of CI provider modules, and their tables: limits, machines and pins."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple, Protocol

from torchyard.ci.narrow import WantedParts
from torchyard.ci.pipeline import Pipeline
from torchyard.ci.yaml import CiFile, Yaml
from torchyard.errors import PlanError
from torchyard.host.data_tables import parse_table
from torchyard.host.files import read_data
from torchyard.model.matrix import Needs
from torchyard.model.quantity import listed, show_size
from torchyard.model.values import Value

_COMMIT = 40


class ActionPin(Value, kw_only=True):
    """A third party's action, pinned to the full hash of its commit."""

    tag: str
    commit: str


class HostedMachine(Value, kw_only=True):
    """A provider's machine, with its published sizes in gigabytes."""

    platform: str
    label: str
    memory: int
    disk: int

    def shortage(self, needs: Needs) -> str | None:
        """Return a need that the machine can't meet, or None if it meets all."""
        for what, need, has in (
            ("memory", needs.memory, self.memory),
            ("disk", needs.disk, self.disk),
        ):
            if need and need > has * 10**9:
                return f"{show_size(need)} of {what}, and `{self.label}` has {has} GB"
        wanted = listed(needs.capabilities)
        return f"{wanted}, and `{self.label}` is not known to have it" if wanted else None


class ProviderTable(Value, kw_only=True):
    """A provider's table. An absent limit is unlimited."""

    title: str
    files: tuple[str, ...]
    """Globs over the provider's files in a repository."""
    python: str
    """The Python that runs torchyard."""
    install: str
    """The command that installs torchyard `{version}` with `{extras}`."""
    limits: dict[str, int]
    machines: tuple[HostedMachine, ...]
    """The provider's machines, for each platform the smallest first."""
    image: str = ""
    """The image for jobs, with `{python}`; empty if machines run jobs directly."""
    prepare: tuple[str, ...] = ()
    """Commands that prepare machines, with `{packages}` to install."""
    inside: tuple[str, ...] = ()
    """Commands that prepare a container of the root's `{image}`, with the `{folder}` of its Python.
    Without any, jobs run in the root instead."""
    actions: dict[str, ActionPin] = {}
    action_host: str = ""
    """The address of the actions' repositories."""
    carries: bool = False
    """Whether another job can merge files of several jobs into a directory."""


class Measure(NamedTuple):
    """A measured value that a provider limits, and what it measures."""

    limit: str
    value: int
    what: str


class CiProvider(Protocol):
    """A provider's module: functions that write its files."""

    def files(self, pipelines: Sequence[Pipeline], table: ProviderTable) -> list[CiFile]:
        """Return the files of all pipelines as structures."""

    def measures(self, document: Mapping[str, Yaml]) -> Iterator[Measure]:
        """Yield the limited values of a file, except its size."""

    def selection(self, pipeline: Pipeline, wanted: WantedParts) -> str | None:
        """Return the provider's text that selects jobs of a pipeline, or None if all run."""


def refuse_settings(pipeline: Pipeline, table: ProviderTable, *keys: str) -> None:
    """Refuse pipeline settings that the provider's files can't express."""
    for key in keys:
        if getattr(pipeline.settings, key):
            where = f"[ci.pipeline.{pipeline.name}]"
            msg = f"files of {table.title} can't express `{key.removesuffix('s')}` of {where}"
            raise PlanError(msg, hint="leave it out, or generate files for another provider")


@cache
def load_provider_table(name: str) -> ProviderTable:
    """Return the checked table of a provider."""
    return parse_provider_table(name, read_data(f"ci/{name}.toml"))


def parse_provider_table(name: str, text: str) -> ProviderTable:
    """Parse a provider's table."""
    return parse_table(f"ci/{name}.toml", text, ProviderTable, _problems)


def _problems(table: ProviderTable) -> Iterator[str]:
    for action, pin in table.actions.items():
        if len(pin.commit) != _COMMIT or set(pin.commit) - set("0123456789abcdef"):
            yield f"pins {action} to something other than the hash of a commit: {pin.commit}"
    for limit, number in table.limits.items():
        if number < 1:
            yield f"has an impossible limit: {limit} = {number}"
