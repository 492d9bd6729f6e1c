"""The table `data/history.toml`: what is followed from run to run, and what is a jump."""

import tomllib
from functools import cache
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from torchyard.errors import DataError
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
    try:
        return msgspec.convert(tomllib.loads(text), dict[str, MetricKind])
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        msg = f"the table data/{_NAME} is malformed: {error}"
        raise DataError(msg) from error
