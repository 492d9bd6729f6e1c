"""The description of a conda package: `info/about.json`, and the licence texts in it."""

from collections.abc import Iterable, Mapping
from importlib.metadata import Distribution
from pathlib import Path
from types import MappingProxyType

import msgspec

from torchyard.model.conda_output import CondaAbout
from torchyard.model.values import UNDECODABLE, Value
from torchyard.package.assemble.vendor import Vendored
from torchyard.package.sbom.owner import LICENSES, project_licenses
from torchyard.package.wheel.dist_info import find_dist_info
from torchyard.toolchain.python_project import PYPROJECT


class About(Value, kw_only=True):
    """The description of a package; `licenses` are the files with its licence texts, by name."""

    summary: str | None = None
    description: str | None = None
    homepage: str | None = None
    documentation: str | None = None
    repository: str | None = None
    license: str | None = None
    license_family: str | None = None
    licenses: dict[str, Path] = {}


class _Project(msgspec.Struct, frozen=True):
    """The fields of `[project]` that describe it."""

    description: str | None = None
    license: str | dict[str, str] | None = None
    urls: dict[str, str] = {}


class _Pyproject(msgspec.Struct):
    project: _Project = _Project()


def about(  # noqa: PLR0913 - whatever describes it
    image: Path | None,
    project: Path | None,
    vendored: Iterable[Vendored],
    license_: str = "",
    *,
    given: CondaAbout | None = None,
    more: Mapping[str, Path] = MappingProxyType({}),
) -> About:
    """Describe a package by an unpacked wheel's metadata, or by the project's own without one.

    `license_` is the licence if neither has one; what the file says of the package, `given`, comes
    first. Licence texts are the project's, those of the vendored libraries in the package, and
    `more`, by name.
    """
    info = find_dist_info(image) if image else None
    if info is not None:
        fields, own = _of_wheel(Distribution.at(info)), project_licenses(info)
    else:
        fields, own = _of_project(project), project_licenses(project) if project else []
    texts = {path.name: path for path in own}
    for library in vendored:
        folder = library.source.parent / LICENSES / library.soname
        texts.update({f"{library.soname}-{path.name}": path for path in sorted(folder.glob("*"))})
    stated = msgspec.structs.asdict(given) if given else {}
    known = {"license": fields.license or license_ or None, "licenses": {**texts, **more}}
    known |= {key: text for key, text in stated.items() if text}
    return msgspec.structs.replace(fields, **known)


def _of_wheel(distribution: Distribution) -> About:
    """Return the fields of a wheel's metadata, which may lack some."""
    fields = distribution.metadata
    found = {
        key: fields[key]
        for key in ("Summary", "License-Expression", "License", "Home-page")
        if key in fields
    }
    return About(
        summary=found.get("Summary"),
        homepage=found.get("Home-page"),
        license=found.get("License-Expression", found.get("License")),
    )


def _of_project(folder: Path | None) -> About:
    """Return the fields of a project's `pyproject.toml`, if it can be read."""
    try:
        text = (folder / PYPROJECT).read_bytes() if folder else b""
        project = msgspec.toml.decode(text, type=_Pyproject).project
    except (OSError, *UNDECODABLE):
        return About()
    stated = project.license
    return About(
        summary=project.description,
        homepage=next(
            (url for key, url in project.urls.items() if key.lower() == "homepage"), None
        ),
        license=stated.get("text") if isinstance(stated, dict) else stated,
    )
