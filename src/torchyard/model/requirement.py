"""Requirements as unchecked text."""

from packaging.requirements import InvalidRequirement, Requirement

_LONGEST = 4096


def parse_requirement(text: str) -> Requirement:
    """Parse a requirement of any length; raise InvalidRequirement if it is malformed.

    packaging takes quadratic time, and fails for deeply nested parentheses in another way.
    """
    if len(text) > _LONGEST:
        msg = f"it has {len(text)} characters, more than {_LONGEST}"
        raise InvalidRequirement(msg)
    try:
        return Requirement(text)
    except RecursionError as error:
        msg = "its parentheses are nested too deeply"
        raise InvalidRequirement(msg) from error


def is_requirement(text: str) -> bool:
    """Return whether a text is a requirement on one line.

    Installers read the text after a line break as options, even within the quotes of a marker.
    """
    try:
        return text.isprintable() and str(parse_requirement(text)).isprintable()
    except InvalidRequirement:
        return False


def is_plain_requirement(text: str) -> bool:
    """Return whether a text requires a package of an index.

    Requirements with an address are not plain: any file may be behind it, and uv expands variables.
    """
    return is_requirement(text) and parse_requirement(text).url is None
