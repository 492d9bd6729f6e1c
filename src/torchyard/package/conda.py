"""Conda packages, written by rattler-build, without a recipe and without conda-forge."""

from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import Distribution
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import NamedTuple, assert_never

import msgspec

from torchyard.config.tables import load_tables
from torchyard.errors import BuildError, HostError
from torchyard.host.snapshot import EPOCH
from torchyard.model.values import Value
from torchyard.package.conda_layout import (
    dist_info,
    lay_out_libraries,
    lay_out_linalg,
    lay_out_package,
    lay_out_tests,
)
from torchyard.package.conda_metadata import CondaBuild, CondaKind, CondaMetadata, describe
from torchyard.package.conda_table import load_conda_table
from torchyard.package.policy import Layout, policy_for
from torchyard.package.prepare import prepare
from torchyard.package.same_core import check_core
from torchyard.package.versions import glibc_of

_LIB = PurePosixPath("lib")
_WITHOUT_MAGMA = "linalg"
"""The folder of a core's result that has its linalg plugin built without MAGMA."""

LEVEL = 9
"""How hard to compress. For a torch of 699 MB, the 3 CPU seconds that level 9 takes longer than
level 5 save each download 11 MB of 147; level 1 is 8 seconds quicker, with 191 MB."""


class About(Value, kw_only=True):
    """What a package tells people."""

    summary: str | None = None
    homepage: str | None = None
    license: str | None = None


class _Inputs(NamedTuple):
    """The folders that a package is made from."""

    core: Path | None
    image: Path | None
    tests: Path | None
    plugin: Path | None = None
    versions: frozenset[str] = frozenset()


def write_conda(  # noqa: PLR0913 - what is packed, where to, and what is said about it
    folder: Path,
    out: Path,
    *,
    metadata: CondaMetadata,
    about: About,
    order: Path,
    level: int = LEVEL,
) -> Path:
    """Pack a tree as it shall be in a prefix; the same tree gives the same bytes.

    The package carries its order in `info/`, under the file's own name.
    """
    try:
        from rattler_build import (  # noqa: PLC0415 - an extra, which may be missing
            RattlerBuildError,
            assemble_package,
        )
    except ImportError as error:
        msg = "conda packages are written by rattler-build, which is not installed"
        raise HostError(msg, hint="pip install 'torchyard[conda]'") from error
    with TemporaryDirectory(prefix="torchyard-conda-") as scratch:
        exports = Path(scratch, "run_exports.json")
        exports.write_bytes(msgspec.json.encode({"weak": metadata.run_exports}))
        try:
            return assemble_package(
                name=metadata.name,
                version=metadata.version,
                target_platform=metadata.subdir,
                build_string=metadata.build,
                build_number=metadata.number,
                output_dir=out,
                files_dir=folder,
                depends=metadata.depends,
                constrains=metadata.constrains,
                summary=about.summary,
                homepage=about.homepage,
                license=about.license,
                # There is no argument for run exports. What is named here gets into info/ under its
                # own name; files in info/ of the tree do, too, but are listed as files to install.
                test_files=[*([exports] if metadata.run_exports else []), order],
                timestamp=datetime.fromtimestamp(EPOCH, UTC),
                compression_level=level,
                detect_prefix=False,  # no file of the trees knows a prefix
            ).path
        except RattlerBuildError as error:
            msg = f"{metadata.file_name} can't be written: {error}"
            raise BuildError(msg) from error


def assemble_conda(  # noqa: PLR0913 - one for each thing that a package depends on
    kind: CondaKind,
    core: Path | None,
    bindings: Path | None,
    out: Path,
    *,
    name: str,
    version: str,
    compute: str,
    blas: str,
    subdir: str,
    build_hash: str,
    order: Path,
    python: str | None = None,
    core_hash: str | None = None,
    build_number: int = 0,
    tests: Path | None = None,
    linalg_apart: bool = False,
    magma: bool = True,
    level: int = LEVEL,
) -> Path:
    """Make one conda package from what the core (install/, vendor/) and the bindings (image/) left.

    Packages of one core pin each other by `core_hash`; those with bindings have a `build_hash` of
    their own. `linalg_apart` says that the linalg plugin has its package, with `magma` or without.
    An extension has no core.
    """
    image = bindings / "image" if bindings else None
    distribution = Distribution.at(dist_info(image)) if image else None
    build = CondaBuild(
        name=name,
        version=version,
        compute=compute,
        blas=blas,
        subdir=subdir,
        build_hash=build_hash,
        core_hash=(core_hash or build_hash) if core else None,
        number=build_number,
        python=python,
        requires=tuple(distribution.requires or ()) if distribution else (),
        linalg_apart=linalg_apart,
        magma=magma,
    )
    describe(kind, build)  # refuses what there is no such package of, before any work
    out.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".torchyard-conda-", dir=out) as scratch:
        prefix = Path(scratch, "prefix")
        prefix.mkdir()
        inputs = _prepare(build, Path(scratch), _Inputs(core, image, tests))
        _lay_out(kind, build, prefix, inputs)
        build = msgspec.structs.replace(build, glibc=glibc_of(inputs.versions))
        metadata = describe(kind, build)
        return write_conda(
            prefix, out, metadata=metadata, about=_about(distribution), order=order, level=level
        )


def _prepare(build: CondaBuild, scratch: Path, inputs: _Inputs) -> _Inputs:
    """Make libraries find each other in a prefix; what the core needs is brought along with it."""
    core, image = inputs.core, inputs.image
    names: Mapping[str, str] = {}
    plugin: Path | None = None
    versions: frozenset[str] = frozenset()
    if core is not None:
        policy = policy_for(Layout.CONDA, build.compute, "")
        done = prepare(core / "install", scratch / "core", policy, vendor=core / "vendor")
        core, plugin, names, versions = done.root, done.root / "lib", done.names, done.versions
        other = inputs.core / _WITHOUT_MAGMA if inputs.core else None
        if other is not None and not build.magma:
            plugin = prepare(other, scratch / "plugin", policy, names=names, base=_LIB).root
    if image is not None:
        site = _LIB / _library_folder(build) / "site-packages"
        package = build.name.replace("-", "_")
        if inputs.core is not None:
            check_core(inputs.core / "install", image / package)
        policy = policy_for(Layout.CONDA, build.compute, str(site / package))
        done = prepare(image, scratch / "site", policy, names=names, base=site)
        image, versions = done.root, versions | done.versions
    return inputs._replace(core=core, image=image, plugin=plugin, versions=versions)


def _lay_out(kind: CondaKind, build: CondaBuild, prefix: Path, inputs: _Inputs) -> None:
    """Fill a prefix with the files of one package."""
    library = load_conda_table().linalg.library
    match kind:
        case CondaKind.PACKAGE:
            lay_out_package(
                _given(inputs.image, kind, "bindings"),
                inputs.core,
                prefix,
                name=build.name,
                python=_library_folder(build),
            )
        case CondaKind.TESTS:
            lay_out_tests(inputs.tests, prefix, build.name)
        case CondaKind.LIBRARIES:
            without = library if build.linalg_apart else None
            lay_out_libraries(_given(inputs.core, kind, "a core"), prefix, without=without)
        case CondaKind.LINALG:
            lay_out_linalg(_given(inputs.plugin, kind, "a core"), prefix, library)
        case CondaKind.META:
            pass  # it is there for what it depends on
        case _:
            assert_never(kind)


def _given(path: Path | None, kind: CondaKind, what: str) -> Path:
    if path is None:
        msg = f"a {kind} package is made from {what}, and there is none"
        raise BuildError(msg, hint="leave this kind of package out for the project")
    return path


def _library_folder(build: CondaBuild) -> str:
    python = load_tables().pythons[str(build.python)]
    return f"python{python.version}{'t' if python.free_threaded else ''}"


def _about(distribution: Distribution | None) -> About:
    """What the metadata of a wheel tells people; not every field is there."""
    if distribution is None:
        return About()
    fields = distribution.metadata
    known = {
        key: fields[key]
        for key in ("Summary", "License-Expression", "License", "Home-page")
        if key in fields
    }
    return About(
        summary=known.get("Summary"),
        homepage=known.get("Home-page"),
        license=known.get("License-Expression", known.get("License")),
    )
