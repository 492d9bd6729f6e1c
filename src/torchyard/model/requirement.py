"""Requirements of packages in an index, as text that was not checked yet."""

from packaging.requirements import InvalidRequirement, Requirement

MALFORMED = (InvalidRequirement, RecursionError)
"""What packaging raises for a text that is no requirement, also if its parentheses are too deep."""


def is_requirement(text: str) -> bool:
    """Return whether a text is a requirement on one line.

    Installers take what follows a line break for options, also one in the quotes of a marker.
    """
    try:
        return text.isprintable() and str(Requirement(text)).isprintable()
    except MALFORMED:
        return False


def is_plain_requirement(text: str) -> bool:
    """Return whether a text requires a package of an index.

    The file behind an address may be anything, and uv replaces variables in addresses.
    """
    return is_requirement(text) and Requirement(text).url is None
