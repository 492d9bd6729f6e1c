"""Compare a package with its cell: project, version, Python, platform, compute, format."""

from collections.abc import Iterator

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from torchyard.checks.expected import labelled_compute, spec_in_package
from torchyard.config.tables import load_tables
from torchyard.errors import SelectionError
from torchyard.model.conda_output import NONE, CondaOutputs
from torchyard.model.identifier import ANY_PYTHON, Cell, parse
from torchyard.package.conda.format import CondaFormat
from torchyard.package.conda.metadata import CondaKind, names_of
from torchyard.package.contents import Contents, is_torn
from torchyard.package.format import Label
from torchyard.package.formats import format_of
from torchyard.package.libtorch.format import is_libtorch
from torchyard.package.versions import is_version_of
from torchyard.package.wheel.compatible_tags import runs_on
from torchyard.package.wheel.metadata import is_wheel


def cell_mismatches(contents: Contents, cell: str, outputs: CondaOutputs = NONE) -> Iterator[str]:
    """Yield the differences of a package from `torch-2.14.0/linux-x86_64/cu130-mkl/cp312/wheel`.

    Unknown properties, such as the compute of a wheel without a local version, agree. `outputs` are
    the file's names and versions of conda packages. A package that is no kind of ours is an output
    of a conda recipe, which may have a version of its own.
    """
    identifier = parse(cell)
    cell_parts = Cell.from_path(identifier.path)
    version = cell_version(cell, outputs)
    kinds = load_tables().packages
    is_output = cell_parts.package not in kinds
    form = CondaFormat.NAME if is_output else kinds[cell_parts.package].format
    if contents.format != form:
        yield f"it is a {contents.format}, and the cell's package a {form}"
        return
    label = format_of(contents).label(contents)
    wanted = cell_names(cell, outputs)
    if not _is_named(contents, label, wanted):
        yield f"it is of `{label.name or contents.file_name}`, and the cell of `{wanted[0]}`"
    if not is_output and not is_version_of(label.version, version):
        yield f"its version is {label.version or 'not known'}, and the cell's {version}"
    compute = labelled_compute(contents, label)
    if compute and compute != cell_parts.compute:
        yield f"it is for {compute}, and the cell for {cell_parts.compute}"
    yield from _wrong_python(contents, label, cell_parts.python)
    yield from _wrong_platform(contents, cell_parts.platform)
    has_library = any(file.binary or "/lib/" in name for name, file in contents.files.items())
    if is_libtorch(contents) and not has_library and not is_torn(contents):
        yield "it has no libraries"


def claimed_cell(contents: Contents) -> str:
    """Return the cell of the spec in a package; empty unless the package belongs to the cell."""
    spec = spec_in_package(contents)
    cell = spec.task.cell if spec and spec.tasks else ""
    try:
        return cell if cell and not any(cell_mismatches(contents, cell)) else ""
    except (SelectionError, LookupError):  # the spec is not from a plan
        return ""


def cell_names(cell: str, outputs: CondaOutputs = NONE) -> tuple[str, ...]:
    """Return the allowed names of a cell's package; an output of a conda recipe has its own."""
    identifier = parse(cell)
    project, _, _ = identifier.label.rpartition("-")
    kind = Cell.from_path(identifier.path).package
    if kind not in set(CondaKind):
        return (project,) if kind in load_tables().packages else (kind,)
    names = names_of(project, outputs)
    kinds = {
        CondaKind.PACKAGE: (names.package, project),
        CondaKind.TESTS: (names.tests,),
        CondaKind.LIBRARIES: (names.libraries,),
        CondaKind.LINALG: (names.linalg,),
        CondaKind.META: (names.cpu, names.gpu),
    }
    return kinds[CondaKind(kind)]


def cell_version(cell: str, outputs: CondaOutputs = NONE) -> str:
    """Return the version of a cell's package."""
    identifier = parse(cell)
    output = outputs.get(Cell.from_path(identifier.path).package)
    return (output.version if output else None) or identifier.label.rpartition("-")[2]


def _is_named(contents: Contents, label: Label, names: tuple[str, ...]) -> bool:
    if is_libtorch(contents):
        file = canonicalize_name(contents.file_name)
        return any(file.startswith(f"{canonicalize_name(f'lib{name}')}-") for name in names)
    return canonicalize_name(label.name) in map(canonicalize_name, names)


def _wrong_python(contents: Contents, label: Label, python: str) -> Iterator[str]:
    if python == ANY_PYTHON:
        return
    if is_wheel(contents):
        try:
            *_, tags = parse_wheel_filename(contents.file_name)
        except InvalidWheelFilename:
            return  # its name differs, too
        fits = any(runs_on(python, tag) for tag in tags)
        found = f"{label.python}-{label.abi}"
    else:
        fits, found = label.abi in ("", python), label.abi
    if not fits:
        yield f"it is for Python {found}, and the cell for {python}"


def _wrong_platform(contents: Contents, platform: str) -> Iterator[str]:
    found = format_of(contents).platforms(contents)
    if platform not in found:
        yield f"it is for {', '.join(sorted(found)) or 'no platform'}, and the cell for {platform}"
