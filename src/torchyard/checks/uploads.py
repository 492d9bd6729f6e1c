"""Refusals of package indexes when a wheel is uploaded: `data/uploads.toml`."""

import re
from collections.abc import Iterator
from functools import cache

from torchyard.config.tables import parse_data
from torchyard.errors import DataError
from torchyard.host.files import read_data
from torchyard.model.quantity import parse_size
from torchyard.model.values import Value


class UploadLimits(Value, kw_only=True):
    """The limits of an index."""

    platforms: tuple[str, ...]
    """Regular expressions over platform tags."""
    metadata_versions: tuple[str, ...]
    dynamic: tuple[str, ...]
    """The fields, in lower case, that `Dynamic` may name."""
    private_classifiers: tuple[str, ...]
    """Globs of classifiers that forbid uploads."""
    summary: int
    """Maximum characters of a summary."""
    url_label: int
    """Maximum characters of the label of a project's URL."""
    expansion: int
    """Maximum ratio of an archive's unpacked size to its own."""
    expansion_least: str
    """The unpacked size that is always allowed."""


@cache
def load_uploads() -> dict[str, UploadLimits]:
    """Read the table and check it; return the limits by the names of indexes."""
    return parse_uploads(read_data("uploads.toml"))


def parse_uploads(text: str) -> dict[str, UploadLimits]:
    """Read the text of the table."""
    table = parse_data("uploads", text, UploadLimits)
    for name, limits in table.items():
        for problem in _problems(limits):
            msg = f"the limits of {name} in data/uploads.toml are wrong: {problem}"
            raise DataError(msg)
    return table


def _problems(limits: UploadLimits) -> Iterator[str]:
    for pattern in limits.platforms:
        try:
            re.compile(pattern)
        except re.error as error:
            yield f"`{pattern}` is not a pattern: {error}"
    try:
        parse_size(limits.expansion_least)
    except ValueError as error:
        yield str(error)
