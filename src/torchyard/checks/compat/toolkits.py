"""The toolkits of compute platforms that a package needs, by major versions: `CUDA 13`."""

from collections.abc import Iterable

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from torchyard.compute.registry import compute_platforms
from torchyard.model.requirement import parse_requirement


def library_toolkits(libraries: Iterable[str]) -> set[str]:
    """Return the toolkits of libraries."""
    return {
        f"{platform.title} {major}"
        for library in libraries
        for platform in compute_platforms()
        if (major := platform.library_toolkit(library))
    }


def required_toolkits(required: Iterable[str]) -> set[str]:
    """Return the toolkits of required wheels, without extras."""
    found = set()
    for requirement in parse_requirements(required):
        pins = [clause.version for clause in requirement.specifier if clause.operator == "=="]
        name = canonicalize_name(requirement.name)
        for platform in compute_platforms():
            major = platform.wheel_toolkit(name, pins[0] if pins else "")
            if major:
                found.add(f"{platform.title} {major}")
    return found


def parse_requirements(required: Iterable[str]) -> list[Requirement]:
    """Parse the lines of Requires-Dist, without extras and malformed ones."""
    found = []
    for line in required:
        try:
            requirement = parse_requirement(line)
            marker = str(requirement.marker or "")
        except InvalidRequirement:
            continue  # another rule reports it
        if "extra" not in marker:
            found.append(requirement)
    return found
