"""Rules about GPU code, and about CUDA and BLAS libraries: the label against the contents."""

import posixpath
import re
from collections.abc import Iterator

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from torchyard.checks.loader.companions import is_vendors, siblings_of, without_digest
from torchyard.checks.loader.resolve import resolver_of
from torchyard.checks.rule import Hit, Severity, rule
from torchyard.checks.subject import Subject
from torchyard.checks.table import load_rule_table
from torchyard.compute.registry import compute_platforms, device_codes, platform_for
from torchyard.model.matrix import any_match
from torchyard.package.contents import Binary, Contents
from torchyard.package.formats import is_split
from torchyard.package.policy import load_layouts

_VERSION = re.compile(r"\.so\.(\d+(?:\.\d+)*)$")


def architectures(contents: Contents) -> dict[str, dict[str, int]]:
    """Return the architectures that have device code, with its size in bytes per file."""
    found: dict[str, dict[str, int]] = {}
    for name, file in contents.files.items():
        for code in file.binary.device if file.binary else ():
            sizes = found.setdefault(code.arch, {})
            sizes[name] = sizes.get(name, 0) + code.size
    return found


@rule("compute-archs", Severity.ERROR, "it does not run on a GPU that it should support")
def archs(subject: Subject) -> Iterator[Hit]:
    """A library's device code does not match the package's GPUs.

    Each library with code for GPUs must have it for every architecture of the spec, and for no
    other: a missing architecture fails on that GPU with "no kernel image is available", or is
    compiled from PTX for minutes at the first use; an extra one makes the package larger by
    hundreds of megabytes. Code for an architecture's own features (`sm_90a` where 9.0 is requested,
    or `gfx90a:xnack+` where gfx90a is) is accepted. NVIDIA's own libraries, and packages that carry
    no spec, are not checked. Third-party libraries may have code for more architectures.

    Compile with the right list: TORCH_CUDA_ARCH_LIST, or PYTORCH_ROCM_ARCH.
    """
    if not subject.expected.archs:
        return
    wanted = set(device_codes(subject.expected.archs))
    resolver = resolver_of(subject)
    bundled = load_rule_table().bundled_in(subject.contents)
    for path, binary in resolver.binaries.items():
        if not binary.device or is_vendors(posixpath.basename(path)):
            continue
        present = {code.arch for code in binary.device}
        missing = sorted(wanted - present)
        more = sorted(a for a in present - wanted if _plain(a) not in wanted)
        if resolver.names[path] in bundled:
            more = []
        parts = [f"lacks code for {', '.join(missing)}"] if missing else []
        parts += [f"has code for {', '.join(more)}, which was not requested"] if more else []
        if parts:
            what = f"{' and '.join(parts)}; asked for: {', '.join(subject.expected.archs)}"
            yield Hit(what, resolver.names[path], "compile with that list of architectures")
    if _is_whole(subject) and not any(b.device for b in resolver.binaries.values()):
        yield Hit(f"no file has code for GPUs; asked for: {', '.join(subject.expected.archs)}")


def _plain(code: str) -> str:
    """Return the plain architecture of device code, without feature suffixes."""
    for platform in compute_platforms():
        code = platform.without_features(code)
    return code


def _is_whole(subject: Subject) -> bool:
    """Return whether a package has all libraries of its project; conda packages have a part."""
    return bool(resolver_of(subject).binaries) and not is_split(subject.contents)


@rule("compute-versions", Severity.ERROR, "another version of CUDA's libraries was tested")
def versions(subject: Subject) -> Iterator[Hit]:
    """The versions of CUDA's libraries are not those of the table.

    A torch release is made and tested with one version of cuDNN, NCCL and the others. A wheel that
    carries its spec must require exactly these versions, and libraries that it bundles must have
    them. The version of `cuda-toolkit` must be that of the compute platform: 13.0 for cu130; and
    wheels for another one (`nvidia-cudnn-cu12`) must not be required.

    Correct the requirements, or the table that the release was planned with.
    """
    required = siblings_of(subject).requirements
    pins = subject.expected.pins
    for row in load_layouts().wheels:
        pin = pins.get(row.pin)
        requirement = required.get(row.distribution)
        if pin and requirement and not _is_pinned(requirement, pin):
            what = f"requires `{requirement}`, but {row.pin} {pin} is in the table"
            yield Hit(what, "", f"require {row.distribution}=={pin}")
        for name, path in resolver_of(subject).by_name.items() if pin else ():
            own = _VERSION.search(name)
            if own and any_match(name, row.libraries) and not f"{pin}.".startswith(f"{own[1]}."):
                what = f"is version {own[1]}, but {row.pin} {pin} is in the table"
                yield Hit(what, resolver_of(subject).names[path], f"bundle {row.pin} {pin}")
    for name in sorted(required.keys() & _wheels_of_others(subject.expected.compute)):
        what = f"requires `{required[name]}`, but is for {subject.expected.compute}"
        yield Hit(what, "", "require the wheels of the right CUDA")
    platform = platform_for(subject.expected.compute)
    version = platform.version(subject.expected.compute)
    toolkit = required.get(platform.metapackage)
    if toolkit and not _is_toolkit(toolkit.specifier, version):
        what = f"requires `{toolkit}`, but is for {subject.expected.compute}"
        yield Hit(what, "", f"require {platform.metapackage}=={version}.*")


def _wheels_of_others(compute: str) -> set[str]:
    """Return the wheels of all other compute platforms; empty if this one is unknown."""
    rows = load_layouts().compute.values()
    provided = [row for row in rows if any_match(compute, row.names)]
    wheels = {wheel.distribution for wheel in load_layouts().wheels} if provided else set()
    return wheels - {wheel.distribution for row in provided for wheel in row.wheels}


def _is_pinned(requirement: Requirement, version: str) -> bool:
    return str(requirement.specifier) == f"=={version}"


def _is_toolkit(specifier: SpecifierSet, version: str) -> bool:
    """Return whether all versions that a specifier allows are releases of one toolkit."""
    return any(
        each.operator in ("==", "===", "~=") and f"{each.version}.".startswith(f"{version}.")
        for each in specifier
    )


@rule("label-compute", Severity.ERROR, "the package is not for the GPUs that its label says")
def label(subject: Subject) -> Iterator[Hit]:
    """The package's libraries or device code do not match its compute platform.

    A package for the CPU needs no library of CUDA or ROCm and has no code for GPUs. One for cu130
    needs the runtime of CUDA 13, or has it linked in, and no other; one for ROCm needs AMD's
    runtime and none of CUDA's. The compute platform is that of the version (`2.13.0+cu130`), or of
    the spec that the package carries.

    Give it the right label: `torchyard repair --local`; or find out which build inputs were mixed
    up.
    """
    compute = subject.expected.compute
    resolver = resolver_of(subject)
    for path, binary in resolver.binaries.items():
        for wrong in _unfit(compute, path, binary):
            what = f"{wrong}, but the package is for {compute}"
            yield Hit(
                what, resolver.names[path], f"compile it for {compute}, or label it otherwise"
            )
    platform = platform_for(compute)
    used = any(platform.name in platforms_of(path, b) for path, b in resolver.binaries.items())
    if platform.device_kinds and _is_whole(subject) and not used:
        what = f"nothing in the package uses a GPU, but it is for {compute}"
        yield Hit(what, "", "see in the log of its build why it was compiled without")


def _unfit(compute: str, path: str, binary: Binary) -> Iterator[str]:
    """Yield the contents and needs of a file that don't fit a compute platform."""
    expected = platform_for(compute)
    for library in (posixpath.basename(path), *binary.needed):
        if expected.is_wrong_runtime(library, compute):
            yield f"is, or needs, `{library}`" if library in path else f"needs `{library}`"
    if expected.device_kinds or not expected.is_gpu:  # else nothing is known to be foreign
        found = platforms_of(path, binary)
        yield from (what for platform, what in found.items() if platform != expected.name)


def platforms_of(path: str, binary: Binary) -> dict[str, str]:
    """Return the compute platforms of a file, by name, each with the evidence."""
    found: dict[str, str] = {}
    for library in (posixpath.basename(path), *binary.needed):
        for platform in compute_platforms():
            if platform.owns(without_digest(library)):
                found.setdefault(platform.name, f"needs `{library}`")
    for code in binary.device:
        for platform in compute_platforms():
            if code.kind in platform.device_kinds:
                found.setdefault(platform.name, f"has code for {code.arch}")
    return found


@rule("label-libraries", Severity.ERROR, "it is chosen for a library that it does not use")
def label_libraries(subject: Subject) -> Iterator[Hit]:
    """A package does not use the libraries that its label promises, or uses others.

    Solvers prefer a conda package with `magma` or `mkl` in its build string. One with `magma` must
    need libmagma, or have its functions; one with `nomagma` must not. A package with the name of a
    BLAS, there or in the spec that it carries, must not use another BLAS; its own can be linked in
    without a trace. If the spec pins cuDNN and NCCL, and the file does not turn them off, a
    package with all libraries of its project must use them.

    See in the log of the build what CMake did not find, or correct the label.
    """
    table, promised = load_rule_table(), set(subject.expected.words)
    parts, blas = {**table.parts, **table.blas}, promised & table.blas.keys()
    if blas and _is_whole(subject):
        promised |= subject.expected.pins.keys()
    wrong = {name: f"no{name}" for name in table.parts if f"no{name}" in promised}
    wrong |= {name: min(blas) for name in (table.blas.keys() - blas if blas else ())}
    used: set[str] = set()
    resolver = resolver_of(subject)
    for path, binary in resolver.binaries.items() if wrong or promised & parts.keys() else ():
        names = "\0".join(("", posixpath.basename(path), *binary.needed, "")).encode()
        names += binary.imports + b"\0" + binary.exports
        for name, pattern in parts.items():
            if found := re.search(rb"\0((?:%b)[^\0]*)" % pattern.encode(), names):
                used.add(name)
                if name in wrong:
                    what = f"uses `{found[1].decode(errors='replace')}`, and its label says"
                    yield Hit(f"{what} {wrong[name]}", resolver.names[path], "label it otherwise")
    for name in sorted((promised & table.parts.keys()) - used if resolver.binaries else ()):
        what = f"nothing in the package uses {name}, and its label promises it"
        yield Hit(what, "", "see in the log of its build why it was compiled without")
