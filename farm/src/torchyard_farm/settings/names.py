"""What things in `farm.toml` may be called."""

import re
from collections.abc import Iterable, Iterator

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.]*")


def invalid_names(words: Iterable[str]) -> Iterator[str]:
    """What is wrong with names: Buildbot's builders, plans and files are called by them."""
    for word in words:
        if not _NAME.fullmatch(word):
            yield f"`{word}` can't be a name: use letters, digits, `_` and `.`"
