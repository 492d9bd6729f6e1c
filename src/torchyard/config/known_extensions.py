"""The variables by which extensions are told what to compile: `data/extensions.toml`."""

from collections.abc import Iterator
from functools import cache

from msgspec import field
from packaging.utils import canonicalize_name

from torchyard.host.data_tables import parse_table
from torchyard.host.files import read_data
from torchyard.model.values import Value


class Variables(Value, kw_only=True):
    """The variables of a project's builds: of all, of those for GPUs, and of the others.

    `why` they are set, and the `source` that says so.
    """

    always: dict[str, str] = field(default_factory=dict)
    gpu: dict[str, str] = field(default_factory=dict)
    cpu: dict[str, str] = field(default_factory=dict)
    why: str = ""
    source: str = ""


class KnownExtensions(Value, kw_only=True):
    """The whole table; `any` applies to every project."""

    any: Variables
    project: dict[str, Variables] = field(default_factory=dict)


@cache
def _load() -> KnownExtensions:
    return parse_table("extensions.toml", read_data("extensions.toml"), KnownExtensions, _problems)


def _problems(table: KnownExtensions) -> Iterator[str]:
    for name, row in table.project.items():
        if name != canonicalize_name(name):
            yield f"has the project `{name}`, which is spelt `{canonicalize_name(name)}`"
        if not (row.why and row.source):
            yield f"does not say why `{name}` has variables, or where that is written"


def known_extension(name: str) -> Variables:
    """Return the row of a project; an empty one if it is not known."""
    return _load().project.get(canonicalize_name(name), Variables())


def known_variables(name: str, *, gpu: bool) -> dict[str, str]:
    """Return the variables of a project's build, for a GPU or not."""
    found: dict[str, str] = {}
    for one in (_load().any, known_extension(name)):
        found |= one.always | (one.gpu if gpu else one.cpu)
    return found
