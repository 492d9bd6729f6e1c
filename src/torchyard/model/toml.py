"""TOML of projects, read with bounds."""

import re
import tomllib
from typing import Any

_LONG_KEY = re.compile(r"(?<![^\s.={}\[\],#])(?:[^\s.={}\[\],#]++\s*+\.\s*+){100}")
"""Names with dots between them; the standard library takes quadratic time for them."""


class TomlError(ValueError):
    """A text is not TOML, or is out of bounds."""


def parse_toml(text: str) -> dict[str, Any]:  # type: ignore[explicit-any] # any TOML
    """Return the table in a text; raise TomlError if it is malformed, or out of bounds."""
    if _LONG_KEY.search(text):
        msg = "a key has more than 100 parts"
        raise TomlError(msg)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TomlError(str(error)) from error
    except RecursionError as error:
        msg = "lists or tables are nested too deeply"
        raise TomlError(msg) from error
    except ValueError as error:
        msg = "a number has too many digits"
        raise TomlError(msg) from error
