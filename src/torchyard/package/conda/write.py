"""Write conda packages with rattler-build, without a recipe or conda-forge."""

import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import Distribution
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import NamedTuple, assert_never

import msgspec

from torchyard.errors import BuildError
from torchyard.host.entry_points import require_module
from torchyard.host.snapshot import EPOCH
from torchyard.model.conda_output import CondaOutput, CondaTests
from torchyard.model.matrix import any_match
from torchyard.package.assemble.prepare import (
    PackingTrees,
    Prepared,
    dynamic_files,
    finish,
    make_trees,
)
from torchyard.package.assemble.same_core import check_core
from torchyard.package.assemble.vendor import Vendored, find_vendored
from torchyard.package.conda.about import About, about
from torchyard.package.conda.amend import TESTS, amend, written_tests
from torchyard.package.conda.index import ABOUT, INDEX, NAME
from torchyard.package.conda.layout import (
    Core,
    files_of,
    lay_out_libraries,
    lay_out_linalg,
    lay_out_package,
    lay_out_tests,
    write_record,
)
from torchyard.package.conda.linked import Environments
from torchyard.package.conda.metadata import (
    CondaBuild,
    CondaKind,
    CondaMetadata,
    describe,
    python_for,
)
from torchyard.package.conda.table import load_conda_table
from torchyard.package.elf.file import Elf
from torchyard.package.policy import Policy, policy_for
from torchyard.package.sbom.bill import package_sbom
from torchyard.package.sbom.component import SBOM_FILE, Bill
from torchyard.package.versions import glibc_of, package_folder
from torchyard.package.wheel.dist_info import find_dist_info
from torchyard.package.zip.writer import members_of
from torchyard.terminal.console import say

_WITHOUT_MAGMA = "linalg"
"""The folder of a core's result with the linalg plugin built without MAGMA."""

_LEVEL = 9
"""The compression level. For a torch of 699 MB, the 3 CPU seconds that level 9 takes longer than
level 5 save each download 11 MB of 147; level 1 is 8 seconds faster, with 191 MB."""


class Filled(NamedTuple):
    """A filled prefix: the needs of its compiled files, if any, and its vendored libraries."""

    prepared: Prepared | None = None
    vendored: tuple[Vendored, ...] = ()


class Sources(NamedTuple):
    """The inputs of packages; each kind uses some of them.

    A core has `install`, `vendor` and maybe `linalg`; an extension has no core. An image is the
    unpacked wheel for one Python. A project is what the core's result keeps of the source.
    `environments` are those of conda that both were compiled in, if any. `license_texts` are the
    file's, by path.
    """

    core: Path | None = None
    image: Path | None = None
    project: Path | None = None
    environments: Environments | None = None
    license_texts: dict[str, str] = {}


def write_conda(  # noqa: PLR0913 - what a package says of itself
    folder: Path,
    out: Path,
    *,
    metadata: CondaMetadata,
    description: About,
    spec: Path,
    sbom: bytes = b"",
    tests: CondaTests | None = None,
) -> Path:
    """Pack a prefix tree; the same tree gives the same bytes.

    The package contains its spec in `info/`, under the file's own name, its SBOM, if given, and its
    tests.
    """
    tests = tests or CondaTests()
    _check_contents(folder, tests, metadata)
    require_module("rattler_build", "conda packages")
    from rattler_build import (  # noqa: PLC0415 - an optional extra
        RattlerBuildError,
        assemble_package,
    )

    with TemporaryDirectory(prefix="torchyard-conda-") as scratch:
        about = [spec]
        if metadata.run_exports:
            about.append(Path(scratch, "run_exports.json"))
            about[-1].write_bytes(msgspec.json.encode({"weak": metadata.run_exports}))
        if sbom:
            about.append(Path(scratch, SBOM_FILE))
            about[-1].write_bytes(sbom)
        texts = Path(scratch, "licenses")
        texts.mkdir()
        licenses = [shutil.copy(path, texts / name) for name, path in description.licenses.items()]
        try:
            package = assemble_package(
                name=metadata.name,
                version=metadata.version,
                target_platform=metadata.subdir,
                build_string=metadata.build,
                build_number=metadata.number,
                output_dir=out,
                files_dir=folder,
                depends=metadata.depends,
                constrains=metadata.constrains,
                summary=description.summary,
                description=description.description,
                homepage=description.homepage,
                license=description.license,
                license_family=description.license_family,
                license_files=licenses,
                # There is no argument for run exports. These files get into info/ under their own
                # names; files in info/ of the tree do, too, but are listed as files to install.
                test_files=about,
                timestamp=datetime.fromtimestamp(EPOCH, UTC),
                compression_level=_LEVEL,
                detect_prefix=False,  # no file of the trees contains a prefix
            ).path
        except RattlerBuildError as error:
            msg = f"{metadata.file_name} can't be written: {error}"
            raise BuildError(msg) from error
    links = {"doc_url": description.documentation, "dev_url": description.repository}
    found = {key: text for key, text in links.items() if text}
    features = " ".join(metadata.track_features)
    fields = {ABOUT: found, INDEX: {"track_features": features} if features else {}}
    text = written_tests(tests)
    if text or any(fields.values()):
        amend(package, fields, {TESTS: text} if text else {})
    return package


def _check_contents(folder: Path, tests: CondaTests, metadata: CondaMetadata) -> None:
    """Refuse a package without the files that its tests name."""
    names = [path.relative_to(folder).as_posix() for path in files_of(folder)]
    for glob in tests.contents:
        if not any(any_match(name, (glob,)) for name in names):
            msg = f"{metadata.file_name} would have no file `{glob}`, which its tests name"
            raise BuildError(msg, hint="correct `contents` in [conda.outputs], or the build")


def assemble_conda(  # noqa: PLR0913 - what is made, of what, and where
    kind: CondaKind,
    build: CondaBuild,
    sources: Sources,
    *,
    scratch: Path,
    out: Path,
    spec: Path,
    bill: Bill,
) -> Path:
    """Make a conda package of a build, with its requirements and glibc."""
    distribution = Distribution.at(find_dist_info(sources.image)) if sources.image else None
    if distribution is not None:
        build = msgspec.structs.replace(build, requires=tuple(distribution.requires or ()))
    describe(kind, build)  # refuses kinds that the build lacks, before any work
    environments = sources.environments
    if environments is not None:
        build = msgspec.structs.replace(build, outside=tuple(environments.owners))
    packing = make_trees(scratch)
    done, vendored = _fill(kind, build, packing, sources)
    if done is not None:
        needed = done.needed - _own_names(packing, sources.core)
        glibc = glibc_of(done.versions)
        build = msgspec.structs.replace(build, glibc=glibc, needed=needed, symbols=done.versions)
        if environments is not None:
            linked = environments.trace(needed)
            for note in linked.notes:
                say(f"note: {note}")
            build = msgspec.structs.replace(build, linked=linked)
    out.mkdir(parents=True, exist_ok=True)
    output = build.outputs.get(kind, CondaOutput())
    texts = _license_files(sources.license_texts, output.license_files, scratch / "licenses")
    return write_conda(
        packing.root,
        out,
        metadata=describe(kind, build),
        description=about(
            sources.image,
            sources.project,
            vendored,
            build.license,
            given=output.about,
            more=texts,
        ),
        spec=spec,
        sbom=package_sbom(bill, packing.root, done.bundled if done else {}),
        tests=output.tests,
    )


def _license_files(
    texts: Mapping[str, str], globs: tuple[str, ...], folder: Path
) -> dict[str, Path]:
    """Write the texts that match the globs, and return them by the names of their files."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {PurePosixPath(path).name: path for path in texts if any_match(path, globs)}
    for name, path in found.items():
        (folder / name).write_text(texts[path], encoding="utf-8")
    return {name: folder / name for name in found}


def _fill(kind: CondaKind, build: CondaBuild, packing: PackingTrees, sources: Sources) -> Filled:
    """Fill a prefix with the files of a package."""
    match kind:
        case CondaKind.PACKAGE:
            image = _given(sources.image, kind, "bindings")
            return Filled(_fill_package(build, packing, image, sources.core))
        case CondaKind.TESTS:
            lay_out_tests(sources.project, packing.root, build.name)
            return Filled()
        case CondaKind.LIBRARIES:
            return _fill_libraries(build, packing, _given(sources.core, kind, "a core"))
        case CondaKind.LINALG:
            return Filled(_fill_linalg(build, packing, _given(sources.core, kind, "a core")))
        case CondaKind.META:
            return Filled()  # it has only requirements
        case _:
            assert_never(kind)


def _fill_package(
    build: CondaBuild, packing: PackingTrees, image: Path, core: Path | None
) -> Prepared:
    package = package_folder(build.name)
    site = PurePosixPath("lib", _library_folder(build), "site-packages")
    vendored: tuple[Vendored, ...] = ()
    shared: Core | None = None
    if core is not None:
        check_core(core / "install", image / package)
        vendored = _vendored(build, core)
        shared = Core(core / "install", [library.target.name for library in vendored])
    lay_out_package(image, shared, packing.root, packing.root / site, package)
    policy = _policy(build, str(site / package))
    done = finish(packing, _laid_out(packing), policy, vendored=vendored)
    write_record(packing.root, packing.root / site)
    return done


def _fill_libraries(build: CondaBuild, packing: PackingTrees, core: Path) -> Filled:
    """Fill it with the libraries, and with those that both packages of the plugin need."""
    without = load_conda_table().linalg.library if build.linalg_apart else None
    lay_out_libraries(core / "install", packing.root, without=without)
    bring = _vendored(build, core)
    return Filled(finish(packing, _laid_out(packing), _policy(build), bring=bring), bring)


def _fill_linalg(build: CondaBuild, packing: PackingTrees, core: Path) -> Prepared:
    folder = core / "install" / "lib" if build.magma else core / _WITHOUT_MAGMA
    lay_out_linalg(folder, packing.root, load_conda_table().linalg.library)
    vendored = _vendored(build, core)
    return finish(packing, _laid_out(packing), _policy(build), vendored=vendored)


def _policy(build: CondaBuild, package: str = "") -> Policy:
    """Return the policy for a Python package, or for files in the prefix itself."""
    brought = load_conda_table().sonames if build.channel_libraries else ()
    return policy_for(NAME, build.compute, package, (*brought, *build.outside))


def _own_names(packing: PackingTrees, core: Path | None) -> set[str]:
    """Return the names of all files of a package, and of the core's libraries."""
    folders = [packing.root, *([core / "install" / "lib"] if core else [])]
    return {path.name for folder in folders for path in files_of(folder)}


def _vendored(build: CondaBuild, core: Path) -> tuple[Vendored, ...]:
    """Return the vendored libraries in the package of the core's libraries."""
    install = core / "install"
    files = dynamic_files(install, (install / member.name for member in members_of(install)))
    return find_vendored(files, (core / "vendor",), _policy(build))


def _laid_out(packing: PackingTrees) -> dict[PurePosixPath, Elf]:
    files = (path for path in files_of(packing.root) if not path.is_symlink())
    return dynamic_files(packing.root, files)


def _given(path: Path | None, kind: CondaKind, what: str) -> Path:
    if path is None:
        msg = f"a {kind} package needs {what}, which the build lacks"
        raise BuildError(msg, hint="exclude this kind of package for the project")
    return path


def _library_folder(build: CondaBuild) -> str:
    python = python_for(build)
    return f"python{python.version}{'t' if python.free_threaded else ''}"
