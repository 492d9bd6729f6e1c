"""Valid names in `farm.toml`."""

import re
from collections.abc import Iterable, Iterator

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.]*")


def invalid_names(words: Iterable[str]) -> Iterator[str]:
    """Return faults of names, which become names of builders, plans and files."""
    for word in words:
        if not _NAME.fullmatch(word):
            yield f"`{word}` can't be a name: use letters, digits, `_` and `.`"
