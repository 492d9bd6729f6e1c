"""Names and requirements of packages in an index, as text that nobody has checked yet."""

import re

PROJECT_NAME = re.compile(r"[A-Za-z0-9]+(?:[-_.][A-Za-z0-9]+)*")


def is_plain_requirement(text: str) -> bool:
    """Return whether a text requires a package of an index, and is nothing else for an installer.

    Not plain are addresses, in which uv replaces variables, and line breaks, also those in quotes
    of a marker: installers take what follows for options.
    """
    from packaging.requirements import InvalidRequirement, Requirement  # noqa: PLC0415 - slow

    try:
        found = Requirement(text)
    except (InvalidRequirement, RecursionError):
        return False
    return found.url is None and text.isprintable() and str(found).isprintable()
