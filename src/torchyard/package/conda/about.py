"""The description of a conda package: `info/about.json`, and the licence texts in it."""

from collections.abc import Iterable
from importlib.metadata import Distribution
from pathlib import Path

import msgspec

from torchyard.model.values import UNDECODABLE, Value
from torchyard.package.assemble.vendor import Vendored
from torchyard.package.sbom.owner import LICENSES, project_licenses
from torchyard.package.wheel.dist_info import find_dist_info
from torchyard.toolchain.python_project import PYPROJECT


class About(Value, kw_only=True):
    """The description of a package; `licenses` are the files with its licence texts, by name."""

    summary: str | None = None
    homepage: str | None = None
    license: str | None = None
    licenses: dict[str, Path] = {}


class _Project(msgspec.Struct, frozen=True):
    """The fields of `[project]` that describe it."""

    description: str | None = None
    license: str | dict[str, str] | None = None
    urls: dict[str, str] = {}


class _Pyproject(msgspec.Struct):
    project: _Project = _Project()


def about(
    image: Path | None, project: Path | None, vendored: Iterable[Vendored], license_: str = ""
) -> About:
    """Describe a package by an unpacked wheel's metadata, or by the project's own without one.

    `license_` is the licence if neither has one. Licence texts are the project's, and those of the
    vendored libraries in the package.
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
    known = msgspec.structs.replace(fields, licenses=texts)
    return msgspec.structs.replace(known, license=known.license or license_ or None)


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
