"""The major versions of CUDA that a package needs."""

import re
from collections.abc import Iterable

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from torchyard.checks.compat.table import load_compat_table


def cuda_majors(libraries: Iterable[str], required: Iterable[str] = ()) -> set[str]:
    """Return major versions, such as 12, by the libraries and the wheels that are needed."""
    table = load_compat_table()
    found = {table.cuda_of(library) for library in libraries}
    for line in required:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        if requirement.marker and "extra" in str(requirement.marker):
            continue
        name = canonicalize_name(requirement.name)
        wheel = re.fullmatch(table.cuda_wheel, name)
        if wheel:
            found.add(wheel[1])
        if name == table.cuda_toolkit:
            pins = (one.version for one in requirement.specifier if one.operator == "==")
            found.update(pin.partition(".")[0] for pin in pins)
    return found - {""}
