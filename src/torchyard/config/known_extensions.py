"""The variables that tell extensions what to compile: `data/extensions.toml`."""

from collections.abc import Iterator
from functools import cache

from msgspec import field
from packaging.utils import canonicalize_name

from torchyard.host.data_tables import parse_table
from torchyard.host.files import read_data
from torchyard.model.values import Value


class Variables(Value, kw_only=True):
    """The variables of a project's builds: of all builds, of those for GPUs, and of the others.

    `why` is the reason for them, `source` where it is documented.
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
            yield f"has the project `{name}`: write it `{canonicalize_name(name)}`"
        if not (row.why and row.source):
            yield f"lacks `why` or `source` of the variables of `{name}`"


def known_extension(name: str) -> Variables:
    """Return the row of a project; an empty one if the project is unknown."""
    return _load().project.get(canonicalize_name(name), Variables())


def known_variables(name: str, *, gpu: bool) -> dict[str, str]:
    """Return the variables of a project's build, for GPUs or not."""
    found: dict[str, str] = {}
    for row in (_load().any, known_extension(name)):
        found |= row.always | (row.gpu if gpu else row.cpu)
    return found
