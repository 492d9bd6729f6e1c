"""Every value of a configuration, set or default, with its origin."""

from collections.abc import Iterator

import msgspec

from torchyard.config.decode import decode
from torchyard.config.document import Document, dotted
from torchyard.config.positions import Path
from torchyard.model.values import Reported


class Setting(Reported):
    """One value, written as in the file."""

    key: str
    value: str
    origin: str


def settings(document: Document) -> Iterator[Setting]:
    """Yield all settings in the order of the reference, except unset ones without a default."""
    yield from _walk(document, decode(document), ())


def _walk(document: Document, value: object, path: Path) -> Iterator[Setting]:
    match value:
        case msgspec.Struct():
            for field in value.__struct_fields__:
                yield from _walk(document, getattr(value, field), (*path, field))
        case dict():
            for key, item in value.items():
                yield from _walk(document, item, (*path, key))
        case [msgspec.Struct(), *_]:
            for index, item in enumerate(value):
                yield from _walk(document, item, (*path, index))
        case None | []:
            return
        case _:
            text = msgspec.json.encode(value).decode()
            yield Setting(dotted(path), text, str(document.origin(path)))
