"""What a package should be, by its name and its spec, if any."""

import re
from collections.abc import Iterable

import msgspec
from packaging.version import Version

from torchyard.compute.registry import compute_in, compute_platforms, platform_for
from torchyard.config.tables import load_tables
from torchyard.model.job_spec import SPEC_FILE, JobSpec
from torchyard.model.requirement import parse_requirement
from torchyard.model.values import UNDECODABLE, Value
from torchyard.package.contents import Contents
from torchyard.package.format import Label
from torchyard.package.formats import format_of
from torchyard.package.wheel.metadata import metadata_fields, values
from torchyard.toolchain.summary import OPENMP, is_wanted

_PINNED = re.compile(r"==(?P<major>\d+)\.(?P<minor>\d+)")

_SPEC = msgspec.json.Decoder(JobSpec)


class Expected(Value, kw_only=True):
    """The expectations known without reading libraries; empty if unknown.

    `archs` are as in the matrix: `9.0`, `9.0+PTX`, `gfx90a`.
    """

    name: str = ""
    version: str = ""
    """With its local part: `2.13.0+cu130`."""
    python: str = ""
    abi: str = ""
    platforms: tuple[str, ...] = ()
    """The platform tags of a wheel, or the subdir of a conda package."""
    compute: str = ""
    """cpu, cu130, rocm7.2 …, by the local version or the spec, else by the requirements."""
    archs: tuple[str, ...] = ()
    pins: dict[str, str] = {}
    """The pinned versions of the compute platform's libraries that the spec does not turn off."""
    words: tuple[str, ...] = ()
    """The words of a conda package's build string, and the spec's BLAS or torch."""
    switches: tuple[str, ...] = ()
    """Parts of torch that the spec enables, by their CMake switches: `USE_CUDNN`."""


def expected_of(contents: Contents, spec: JobSpec | None = None) -> Expected:
    """Return the expectations of a package's name and spec; `spec` precedes that in the package."""
    label = format_of(contents).label(contents)
    expected = Expected(
        name=label.name,
        version=label.version,
        python=label.python,
        abi=label.abi,
        platforms=label.platforms,
        compute=labelled_compute(contents, label),
        words=tuple(re.findall("[^_]+", label.build)),
    )
    spec = spec or spec_in_package(contents)
    return expected if spec is None else _as_specified(expected, spec)


def labelled_compute(contents: Contents, label: Label) -> str:
    """Return the compute by the build string, else by the local version or the requirements."""
    if label.build:
        return _built_compute(label.build)
    return local_compute(label.version) or _required_compute(contents)


def local_compute(version: str) -> str:
    """Return the compute in a version, cu130 for `2.14.0+cu130`, or ""."""
    try:
        return compute_in(Version(version).local or "")
    except ValueError:
        return ""


def _built_compute(build: str) -> str:
    """Return the compute in a build string."""
    found = (platform.compute_of_conda_build(build) for platform in compute_platforms())
    return next(filter(None, found), "")


def _required_compute(contents: Contents) -> str:
    """Return the compute of required wheels, by their versions."""
    pinned: dict[str, str] = {}
    for text in values(metadata_fields(contents), "Requires-Dist"):
        try:
            requirement = parse_requirement(text)
            found = _PINNED.match(str(requirement.specifier))
        except ValueError:
            continue
        if found and "extra" not in str(requirement.marker or ""):
            pinned[requirement.name] = f"{found['major']}.{found['minor']}"
    computes = (platform.compute_required(pinned) for platform in compute_platforms())
    return next(filter(None, computes), "")


def spec_in_package(contents: Contents) -> JobSpec | None:
    """Return the spec in a package, if it has a readable one."""
    text = spec_text(contents)
    if text is None:
        return None
    try:
        return _SPEC.decode(text)
    except UNDECODABLE:
        return None


def spec_text(contents: Contents) -> bytes | None:
    """Return the text of the spec in a package."""
    members = (name for name in contents.texts if name.rpartition("/")[2] == SPEC_FILE)
    name_of_spec = min(members, key=lambda name: name.count("/"), default=None)
    return None if name_of_spec is None else contents.texts[name_of_spec]


def _as_specified(expected: Expected, spec: JobSpec) -> Expected:
    """Return the expectations of a name, corrected by a job spec."""
    if not spec.tasks:
        return expected
    archs = next((words for task in spec.tasks if (words := task.words("archs"))), [])
    try:
        facts = spec.task.facts
    except ValueError:  # the scope is not from a plan
        facts = {}
    compute = facts.get("compute", "") or expected.compute
    features = platform_for(compute).table().machine.features
    switches = {"openmp": OPENMP} | {n: f.switch for n, f in features.items() if f.switch}
    for task in spec.tasks:
        tables = task.table("env"), task.table("cmake")
        switches = {n: switch for n, switch in switches.items() if is_wanted(switch, *tables)}
    names = [name for name in _pin_names() if name in switches or name not in features]
    return msgspec.structs.replace(
        expected,
        compute=compute,
        archs=tuple(archs),
        pins={name: text for task in spec.tasks for name in names if (text := task.text(name))},
        words=(*expected.words, facts.get("variant", "")),
        switches=tuple(switches.values()),
    )


def _pin_names() -> Iterable[str]:
    """Return the names of pins in the tables of releases."""
    rows = (
        row for release in load_tables().releases.values() for row in release.libraries.values()
    )
    return sorted({name for row in rows for name in row} | {"triton"})
