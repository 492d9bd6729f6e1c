"""Rules about extensions of torch: the torch that they need, and the installed one."""

import posixpath
from collections.abc import Iterable, Iterator

from torchyard.checks.compat.abi import ApiUse, abi_of
from torchyard.checks.compat.extension import (
    admitted_releases,
    declared_torch,
    is_named,
    wheel_extension,
)
from torchyard.checks.compat.matrix import (
    METADATA,
    Obstacle,
    ObstacleKind,
    compared_torches,
    load_matrix,
    toolkit_clashes,
)
from torchyard.checks.compat.stable_names import (
    Release,
    parse_release,
    show_release,
    torch_releases,
    torch_shims,
)
from torchyard.checks.compat.table import TORCH, load_compat_table, torch_libraries
from torchyard.checks.compat.toolkits import library_toolkits
from torchyard.checks.compat.undefined import undefined_in
from torchyard.checks.expected import local_compute, spec_in_package
from torchyard.checks.loader.companions import siblings_of, without_digest
from torchyard.checks.loader.resolve import resolver_of
from torchyard.checks.rule import Hit, Severity, rule
from torchyard.checks.subject import Subject
from torchyard.model.abi import AbiClass
from torchyard.package.wheel.metadata import is_wheel


@rule("torch-floor", Severity.ERROR, "it is installed beside a torch that it can't load with")
def torch_floor(subject: Subject) -> Iterator[Hit]:
    """A wheel admits a torch that lacks functions which it uses.

    Libraries of torch's stable ABI use its C functions alone (`aoti_torch_*`, `torch_*`), and each
    of these came with a release, which torchyard's `torch_shims.txt` lists. The newest one that is
    used is the floor: an older torch lacks it, and importing fails with "undefined symbol".
    TORCH_TARGET_VERSION hides newer functions from the compiler, so it sets the same floor, but
    leaves no other trace. `Requires-Dist: torch` must not admit anything older; without it, every
    torch is admitted. Libraries that use torch's C++ functions have no such floor: `torchyard
    compat` compares them with each release.

    Require at least that release, or compile with TORCH_TARGET_VERSION of the oldest one admitted.
    """
    abi = abi_of(subject)
    if abi is None or not abi.torch.floor or not is_wheel(subject.contents):
        return
    older = [release for release in torch_releases() if release < parse_release(abi.torch.floor)]
    admitted = admitted_releases(subject, older)
    if admitted:
        floor, declared = abi.torch.floor, declared_torch(subject)
        says = f"`torch{declared}`" if declared else "any torch" if declared == "" else "no torch"
        yield Hit(
            f"uses `{abi.torch.symbol}`, which torch has since {floor}, but the wheel requires "
            f"{says}, which admits {show_release(admitted[0])}",
            abi.torch.member,
            f"require torch>={floor}, or compile with a lower TORCH_TARGET_VERSION",
        )


@rule("label-abi", Severity.ERROR, "it does not work with all releases that it should serve")
def label_abi(subject: Subject) -> Iterator[Hit]:
    """A wheel uses functions that its ABI class does not allow.

    A file with `abi = "stable"` in `[build]` has one wheel serve several torch releases, `abi3`
    several Pythons, and `both` both. So its libraries may use only torch's C functions, or only
    Python's stable ABI; else they fail with "undefined symbol", or crash, with all releases but the
    one that they were compiled with. The rule applies to packages that carry their spec.

    Compile with `torch/csrc/stable` or `Py_LIMITED_API`, or declare its actual class.
    """
    spec, abi = subject.spec or spec_in_package(subject.contents), abi_of(subject)
    words = [word for task in (spec.tasks if spec else ()) if (word := task.text("abi"))]
    if abi is None or not words or words[-1] not in set(AbiClass):
        return
    declared = AbiClass(words[-1])
    for fits, need, hint in (
        (declared.fits_pythons, abi.python, "define Py_LIMITED_API"),
        (declared.fits_torches, abi.torch, "use torch/csrc/stable alone"),
    ):
        if fits and need.use is ApiUse.FULL:
            what = f"uses `{need.symbol}`, which is not stable, but the file says abi = {declared}"
            yield Hit(what, need.member, f'{hint}, or write abi = "{abi.name}"')


@rule("torch-toolkit", Severity.ERROR, "the torch beside it brings another CUDA")
def torch_toolkit(subject: Subject) -> Iterator[Hit]:
    """An extension needs another major version of CUDA than the torch that it is installed with.

    A library that needs `libcudart.so.12` finds it only if torch, or a required wheel, brings
    CUDA 12. If torch brings CUDA 13, importing fails with "cannot open shared object file"; if both
    are there, two runtimes are in one process. The torch is the one that is checked together with
    the wheel. Else it is that of PyPI, of each release that `Requires-Dist` admits: up to 2.10 it
    brings CUDA 12, from 2.11 on CUDA 13 (torchyard's `compat.toml`). Of libraries that differ only
    in a number (`libdemo_cuda118.so`, `libdemo_cuda130.so`), it is enough that one fits. A wheel
    whose local version names its compute platform (`+cu126`) is for a torch of the same, and not
    compared with PyPI's.

    Exclude the torch releases with another CUDA, or compile with the one that they bring.
    """
    if declared_torch(subject) is None or not is_named(subject):
        return
    extension = wheel_extension(subject)
    torches = compared_torches(subject) if TORCH in siblings_of(subject).given else []
    given = {toolkit for torch in torches for toolkit in torch.toolkits}
    if given:
        for obstacle in toolkit_clashes(extension, given):
            what = f"needs {_toolkits(obstacle)}, but the torch beside it brings {_joined(given)}"
            yield Hit(what, _member(obstacle), "compile with the CUDA that torch brings")
        return
    if local_compute(subject.expected.version) or spec_in_package(subject.contents):
        return
    table = load_compat_table()
    clashes = {
        release: clash
        for release in admitted_releases(subject, torch_releases())
        if (clash := next(toolkit_clashes(extension, {table.toolkit(release)}), None))
    }
    if clashes:
        wrong, first = list(clashes), next(iter(clashes.values()))
        brought = _joined({table.toolkit(release) for release in wrong})
        yield Hit(
            f"needs {_toolkits(first)}, but the wheel admits torch {_span(wrong)}, which brings "
            f"{brought} on PyPI",
            _member(first),
            f"exclude torch {_span(wrong)}, or compile with {brought}",
        )


def _toolkits(obstacle: Obstacle) -> str:
    return _joined(library_toolkits(obstacle.names) or obstacle.names)


def _member(obstacle: Obstacle) -> str:
    return "" if obstacle.member == METADATA else obstacle.member


def _joined(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _span(releases: list[Release]) -> str:
    first, last = show_release(releases[0]), show_release(releases[-1])
    return first if first == last else f"{first} to {last}"


@rule("torch-symbols", Severity.ERROR, "it is installed beside a torch that it can't load with")
def torch_lacks(subject: Subject) -> Iterator[Hit]:
    """A wheel needs a symbol or a library that an admitted torch release lacks.

    torch's C++ functions come, change and go with its releases. Importing the extension beside a
    release without one of them fails with "undefined symbol". It is compared with the torch that is
    checked together with it. Else it is compared with each release that `Requires-Dist` admits and
    whose symbols `torchyard compat` has kept on this machine, for the same Python and machine; if
    there is none, torch's symbols are undecided. `torchyard compat` reads torch's releases, and
    gives the same answer. `torch-floor` covers stable C functions.

    Exclude the releases that lack it in Requires-Dist, or compile against the oldest one admitted.
    """
    if abi_of(subject) is None or not is_named(subject):
        return
    lacking: dict[str, dict[str, tuple[str, ...]]] = {}
    for verdict in load_matrix(wheel_extension(subject), compared_torches(subject)):
        for obstacle in verdict.obstacles:
            left = tuple(n for n in obstacle.names if not _is_reported(n, obstacle.member, subject))
            if obstacle.kind is not ObstacleKind.TOOLKIT and left:
                lacking.setdefault(obstacle.member, {})[verdict.torch.version] = left
    for member, releases in lacking.items():
        (first, names), *others = releases.items()
        more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
        also = f"; nor does it load with {', '.join(dict(others))}" if others else ""
        yield Hit(
            f"needs `{names[0]}`{more} of torch, which torch {first} lacks{also}",
            member,
            "exclude these releases in Requires-Dist, or compile against the oldest one admitted",
        )


def _is_reported(name: str, member: str, subject: Subject) -> bool:
    """Return whether torch-floor or symbols-undefined reports a symbol."""
    undefined = undefined_in(subject).get(member, ())
    return name in torch_shims() or any(u.symbol == name and u.is_missing for u in undefined)


@rule("torch-empty", Severity.WARNING, "what should have been compiled is missing")
def torch_empty(subject: Subject) -> Iterator[Hit]:
    """A wheel of an extension has no compiled file.

    It requires torch, and its tag, such as `cp312-cp312` or `cp310-abi3`, says that there are
    extension modules. Many projects leave them out without an error if the compiler, CUDA or torch
    was not found while they were built. The wheel installs, and is slow or fails when it is used. A
    damaged archive is reported by other rules.

    Look for the reason in the log of the build. A wheel without compiled files has the tag
    `py3-none-any`.
    """
    contents, abi = subject.contents, subject.expected.abi
    if contents.faults or abi in ("", "none") or TORCH not in siblings_of(subject).requirements:
        return
    if is_wheel(contents) and not any(file.binary for file in contents.files.values()):
        what = f"nothing in the wheel is compiled, but its label says {abi}"
        yield Hit(what, "", "see why in the log of its build, or tag it py3-none-any")


@rule("torch-vendored", Severity.ERROR, "two copies of torch in one process: it crashes")
def torch_vendored(subject: Subject) -> Iterator[Hit]:
    """An extension brings copies of torch's own libraries.

    The wheel requires torch, whose libraries are loaded when it is imported. A second
    `libtorch_cpu.so` or `libc10.so`, which `auditwheel repair` copies into a wheel unless it is
    told not to, registers all operators again and fails, or has its own allocator and dispatcher,
    and memory is freed by the wrong one.

    Leave them out: `auditwheel repair --exclude 'libtorch*' --exclude 'libc10*'`, or let torchyard
    make the wheel, which never copies them.
    """
    if TORCH not in siblings_of(subject).requirements:
        return
    resolver = resolver_of(subject)
    for path, binary in resolver.binaries.items():
        name = without_digest(posixpath.basename(path))
        if torch_libraries([name]) and _is_torchs(binary.exports):
            hint = "leave torch's libraries out: auditwheel repair --exclude 'libtorch*'"
            yield Hit(f"is a copy of torch's `{name}`", resolver.names[path], hint)


def _is_torchs(exports: bytes) -> bool:
    """Return whether a library defines functions of torch, not only its name."""
    return any(part in exports for part in (b"_ZN2at", b"_ZN3c10", b"_ZNK3c10"))
