"""Translate the requirements of a Python distribution to conda's."""

from collections.abc import Iterable, Iterator

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import Specifier
from packaging.utils import canonicalize_name
from packaging.version import Version

from torchyard.compute.registry import compute_platforms
from torchyard.errors import BuildError
from torchyard.model.requirement import parse_requirement
from torchyard.package.conda.table import load_conda_table


def conda_requirements(
    requires: Iterable[str], project: str, python: str, subdir: str
) -> Iterator[str]:
    """Translate the `Requires-Dist` for a Python and a platform, without extras.

    Requirements of a project's own extras are left out.
    """
    environment = _environment(python, subdir)
    for text in requires:
        try:
            requirement = parse_requirement(text)
        except InvalidRequirement as error:
            msg = f"the requirement `{text}` in the metadata of {project} can't be read: {error}"
            raise BuildError(msg, hint="correct it in the project") from error
        if canonicalize_name(requirement.name) == canonicalize_name(project):
            continue
        if requirement.marker is None or requirement.marker.evaluate(environment):
            yield _translated(requirement, project)


def _environment(python: str, subdir: str) -> dict[str, str]:
    """Return the environment for markers, independent of the running Python."""
    return {
        **msgspec.to_builtins(load_conda_table().markers[subdir]),
        "extra": "",
        "implementation_name": "cpython",
        "implementation_version": f"{python}.0",
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_version": "",
        "python_full_version": f"{python}.0",
        "python_version": python,
    }


def _translated(requirement: Requirement, project: str) -> str:
    if requirement.url:
        msg = f"{project} requires `{requirement}`, but conda supports no addresses"
        raise BuildError(msg, hint="require a version instead")
    versions = ",".join(sorted(map(_version, requirement.specifier)))
    return f"{_name(requirement.name)} {versions}".strip()


def _name(distribution: str) -> str:
    """Return the name on conda-forge, usually the same; vendors' wheels may contain a version."""
    name = canonicalize_name(distribution)
    distributions = load_conda_table().distributions
    plain = (platform.conda_name(name) for platform in compute_platforms())
    return next((distributions[wheel] for wheel in (name, *plain) if wheel in distributions), name)


def _version(specifier: Specifier) -> str:
    """Translate `~=1.4.2` to `>=1.4.2,1.4.*`; most other specifiers are the same in conda."""
    version = specifier.version.partition("+")[0]  # conda has build strings for local versions
    match specifier.operator:
        case "~=":
            release = ".".join(map(str, Version(version).release[:-1]))
            return f">={version},{release}.*"
        case "==" if version.endswith(".*"):
            return version
        case "===":
            return f"=={version}"
        case operator:
            return f"{operator}{version}"
