r"""Untrusted text on a terminal: logs, and names in packages, stores, orders and files.

Control characters in it could move the cursor, change a title, hide a line, or answer for the user.
They are shown as escape sequences: `\x1b`. The streams escape all text, so callers need not.
`printable` is for names within a line, and also escapes line ends.
"""

import re

_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Characters that change the text direction, and so can disguise what follows."""

_HOSTILE = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029{_BIDI}]")
_COLOUR = re.compile(r"(\x1b\[[0-9;:]*m)")


def printable(text: str) -> str:
    """Escape control characters and line ends in a name."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def neutral(text: str, *, colours: bool = False) -> str:
    """Escape control characters in text of several lines, optionally except colours."""
    if _HOSTILE.search(text) is None:
        return text
    parts = _COLOUR.split(text) if colours else [text]
    parts[::2] = [_HOSTILE.sub(lambda match: _escaped(match[0]), part) for part in parts[::2]]
    return "".join(parts)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()
