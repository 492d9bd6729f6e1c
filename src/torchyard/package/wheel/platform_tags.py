"""The known platform tags of wheels: `data/tags.toml`."""

import re
from collections.abc import Iterator

from torchyard.errors import UsageError
from torchyard.host.data_tables import parse_table
from torchyard.host.files import read_data
from torchyard.model.suggest import did_you_mean
from torchyard.model.values import Value


class PlatformRow(Value, kw_only=True):
    """The prefix of a system's tags, as a regular expression, and the machines at their end."""

    begins: str
    machines: tuple[str, ...]


class Tags(Value, kw_only=True):
    """The whole table."""

    platform: tuple[PlatformRow, ...]


def refuse_unknown_platforms(tags: str) -> None:
    """Refuse unknown platform tags, which no installer would accept."""
    rows = parse_table("tags.toml", read_data("tags.toml"), Tags, _problems).platform
    for tag in tags.split("."):
        if not any(_fits(tag, row) for row in rows):
            msg = f"`{tag}` is not a platform tag of wheels"
            raise UsageError(msg, hint=_hint(tag, rows))


def _fits(tag: str, row: PlatformRow) -> bool:
    begins = re.match(row.begins, tag)
    return begins is not None and tag[begins.end() :] in row.machines


def _hint(tag: str, rows: tuple[PlatformRow, ...]) -> str:
    for row in rows:
        begins = re.match(row.begins, tag)
        if begins and begins[0]:
            return did_you_mean(tag, [begins[0] + machine for machine in row.machines])
    return "tags look like manylinux_2_28_x86_64, macosx_14_0_arm64, win_amd64 or any"


def _problems(tags: Tags) -> Iterator[str]:
    for row in tags.platform:
        try:
            re.compile(row.begins)
        except re.error as error:
            yield f"has an invalid pattern: {row.begins}: {error}"
