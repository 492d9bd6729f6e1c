"""Requirements of packages in an index, as text that was not checked yet."""

from packaging.requirements import InvalidRequirement, Requirement

MALFORMED = (InvalidRequirement, RecursionError)
"""What packaging raises for a text that is no requirement, also if its parentheses are too deep."""


def is_plain_requirement(text: str) -> bool:
    """Return whether a text requires a package of an index, and is nothing else for an installer.

    Not plain are addresses, in which uv replaces variables, and line breaks, also those in quotes
    of a marker: installers take what follows for options.
    """
    try:
        found = Requirement(text)
    except MALFORMED:
        return False
    return found.url is None and text.isprintable() and str(found).isprintable()
