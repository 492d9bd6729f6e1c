"""Requirements as unchecked text."""

from packaging.requirements import InvalidRequirement, Requirement

MALFORMED = (InvalidRequirement, RecursionError)
"""What packaging raises for an invalid requirement, or for too deeply nested parentheses."""


def is_requirement(text: str) -> bool:
    """Return whether a text is a requirement on one line.

    Installers read the text after a line break as options, even within the quotes of a marker.
    """
    try:
        return text.isprintable() and str(Requirement(text)).isprintable()
    except MALFORMED:
        return False


def is_plain_requirement(text: str) -> bool:
    """Return whether a text requires a package of an index.

    Requirements with an address are not plain: any file may be behind it, and uv expands variables.
    """
    return is_requirement(text) and Requirement(text).url is None
