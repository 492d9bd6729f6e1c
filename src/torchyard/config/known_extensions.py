"""The variables by which extensions are told what to compile: `data/extensions.toml`."""

from collections.abc import Iterator
from functools import cache

from msgspec import field
from packaging.utils import canonicalize_name

from torchyard.host.data_tables import parse_table
from torchyard.host.files import read_data
from torchyard.model.values import Value


class Variables(Value, kw_only=True):
    """The variables of a project's builds: of all, of those for GPUs, and of the others."""

    always: dict[str, str] = field(default_factory=dict)
    gpu: dict[str, str] = field(default_factory=dict)
    cpu: dict[str, str] = field(default_factory=dict)


class KnownExtensions(Value, kw_only=True):
    """The whole table; `any` applies to every project."""

    any: Variables
    project: dict[str, Variables] = field(default_factory=dict)


@cache
def _load() -> KnownExtensions:
    return parse_table("extensions.toml", read_data("extensions.toml"), KnownExtensions, _problems)


def _problems(table: KnownExtensions) -> Iterator[str]:
    for name in table.project:
        if name != canonicalize_name(name):
            yield f"has the project `{name}`, which is spelt `{canonicalize_name(name)}`"


def known_variables(name: str, *, gpu: bool) -> dict[str, str]:
    """Return the variables of a project's build, for a GPU or not."""
    table = _load()
    own = table.project.get(canonicalize_name(name), Variables())
    found: dict[str, str] = {}
    for one in (table.any, own):
        found |= one.always | (one.gpu if gpu else one.cpu)
    return found
