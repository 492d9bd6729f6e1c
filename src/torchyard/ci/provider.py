"""The interface of a CI provider's module, and its table: limits, machines and pins."""

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
    """A third party's program that a provider runs, by the full hash of its commit."""

    tag: str
    commit: str


class HostedMachine(Value, kw_only=True):
    """A machine that a provider offers, with the gigabytes that it publishes."""

    platform: str
    label: str
    memory: int
    disk: int

    def shortage(self, needs: Needs) -> str | None:
        """Return what of some needs the machine does not have, or None if it has everything."""
        for what, need, has in (
            ("memory", needs.memory, self.memory),
            ("disk", needs.disk, self.disk),
        ):
            if need and need > has * 10**9:
                return f"{show_size(need)} of {what}, and `{self.label}` has {has} GB"
        wanted = listed(needs.capabilities)
        return f"{wanted}, and `{self.label}` is not known to have it" if wanted else None


class ProviderTable(Value, kw_only=True):
    """What is known about a provider. A limit that is not given does not exist."""

    title: str
    files: tuple[str, ...]
    """Globs over the paths of its files in a repository."""
    python: str
    """The Python that runs torchyard."""
    install: str
    """The command that installs torchyard in `{version}`, with the optional parts `{extras}`."""
    limits: dict[str, int]
    machines: tuple[HostedMachine, ...]
    """The provider's own machines; of each platform, smallest first."""
    image: str = ""
    """The image that they run jobs in, with `{python}`; empty if they run them directly."""
    prepare: tuple[str, ...] = ()
    """Commands that make them ready, with the names of `{packages}`."""
    inside: tuple[str, ...] = ()
    """Commands that make a container of the root's `{image}` ready, with the `{folder}` of its
    Python. Without any, jobs run in no such container, but in the root."""
    actions: dict[str, ActionPin] = {}
    action_host: str = ""
    """Where the repositories of actions are."""
    carries: bool = False
    """Whether files of several jobs can be merged into a directory of another job."""


class Measure(NamedTuple):
    """A number of a file that a provider limits, and what has it."""

    limit: str
    value: int
    what: str


class CiProvider(Protocol):
    """How one provider's files are written, as functions of a module."""

    def files(self, pipelines: Sequence[Pipeline], table: ProviderTable) -> list[CiFile]:
        """Return the files of all pipelines, as structures."""

    def measures(self, document: Mapping[str, Yaml]) -> Iterator[Measure]:
        """Yield what the provider limits in one of its files, except its size."""

    def selection(self, pipeline: Pipeline, wanted: WantedParts) -> str | None:
        """Return which jobs of a pipeline run, as text for the provider; None if it reads none."""


def refuse_settings(pipeline: Pipeline, table: ProviderTable, *keys: str) -> None:
    """Refuse settings of a pipeline that a provider's files can't express."""
    for key in keys:
        if getattr(pipeline.settings, key):
            where = f"[ci.pipeline.{pipeline.name}]"
            msg = f"files of {table.title} can't express `{key.removesuffix('s')}` of {where}"
            raise PlanError(msg, hint="leave it out, or generate files for another provider")


@cache
def load_provider_table(name: str) -> ProviderTable:
    """Return the table of a provider, checked."""
    return parse_provider_table(name, read_data(f"ci/{name}.toml"))


def parse_provider_table(name: str, text: str) -> ProviderTable:
    """Read the text of a provider's table."""
    return parse_table(f"ci/{name}.toml", text, ProviderTable, _problems)


def _problems(table: ProviderTable) -> Iterator[str]:
    for action, pin in table.actions.items():
        if len(pin.commit) != _COMMIT or set(pin.commit) - set("0123456789abcdef"):
            yield f"pins {action} by something else than the hash of a commit: {pin.commit}"
    for limit, number in table.limits.items():
        if number < 1:
            yield f"has a limit that nothing can keep: {limit} = {number}"
