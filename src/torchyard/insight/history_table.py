"""The table `data/history.toml`: what is followed from run to run, and what is a jump."""

from functools import cache
from typing import Annotated, Literal

from msgspec import Meta

from torchyard.host.data_tables import parse_table
from torchyard.host.files import read_data
from torchyard.model.values import Value

_NAME = "history.toml"


class MetricKind(Value, kw_only=True):
    """A kind of figures, such as the sizes of libraries."""

    title: str
    unit: Literal["seconds", "bytes", "count", "percent"]
    ratio: Annotated[float, Meta(ge=1)]
    least: Annotated[float, Meta(gt=0)]
    appears: bool = False
    relative: bool = False


@cache
def metric_kinds() -> dict[str, MetricKind]:
    """Return the table, read once."""
    return parse_metric_kinds(read_data(_NAME))


def parse_metric_kinds(text: str) -> dict[str, MetricKind]:
    """Parse the table."""
    return parse_table(_NAME, text, dict[str, MetricKind])
