"""Rules about rpaths, the directories in which files search for libraries."""

from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from torchyard.checks.expected import spec_in_package
from torchyard.checks.loader.resolve import folders, is_program, resolver_of
from torchyard.checks.rule import Hit, Severity, rule
from torchyard.checks.rules.linking import and_others
from torchyard.checks.subject import Subject
from torchyard.errors import DataError
from torchyard.package.conda.table import channel_sonames
from torchyard.package.contents import Binary
from torchyard.package.formats import format_of
from torchyard.package.policy import Policy, extension_policy, load_layouts, policy_for
from torchyard.package.wheel.format import PREFIX

_MOST_ENTRIES = 3
"""The number of shown entries of an rpath; further ones are only counted."""


class Wanted(NamedTuple):
    """The policy of a package, and the common folder of its paths."""

    policy: Policy
    root: str


def wanted_of(subject: Subject) -> Wanted | None:
    """Return the policy of a package with a spec, as torchyard's have; None for others."""
    contents, expected = subject.contents, subject.expected
    spec = spec_in_package(contents)
    if spec is None:
        return None
    form = format_of(contents)
    try:  # the file may have been renamed
        project = spec.task.facts["name"] if spec.tasks else expected.name
        package = form.python_package(contents, project)
        brought = channel_sonames(spec.task.text("libraries")) if spec.tasks else ()
        if spec.tasks and "label" in spec.task.settings:  # an extension's
            policy = extension_policy(contents.format, package)
        else:
            policy = policy_for(contents.format, expected.compute, package, brought)
        return Wanted(policy, form.top_folder(contents))
    except (DataError, ValueError):  # or the scope is not from a plan
        return None


def _written(binary: Binary) -> str:
    return binary.runpath or binary.rpath


@rule("linking-rpath-outside", Severity.ERROR, "it may load an untrusted library, or none")
def outside(subject: Subject) -> Iterator[Hit]:
    """A file searches for libraries in a directory that is not relative to its own location.

    An rpath should begin with `$ORIGIN`, the folder of the file. An absolute directory belongs to
    the machine that compiled the file: elsewhere it does not exist, or has other content, and any
    user with write access to it controls what is loaded. An empty entry, and a relative one without
    `$ORIGIN`, refer to the current directory of the process.

    Remove the entry: `torchyard repair --rpath policy` does it.
    """
    for listed, member, others in _entries(subject, _outside):
        what = f"looks for libraries in {listed}, outside of the installed packages{others}"
        yield Hit(what, member, "let every entry begin with $ORIGIN")


@rule(
    "linking-rpath-above",
    Severity.WARNING,
    "it may load a library of the system by mistake",
    own=Severity.ERROR,
)
def above(subject: Subject) -> Iterator[Hit]:
    """A file searches for libraries above the folder that packages are installed into.

    An rpath that begins with `$ORIGIN` should stay inside of site-packages, or lead to the
    environment's `lib`, where wheels such as Intel's put their libraries; in a conda package it
    should stay inside of the prefix. Directories above do not belong to the package. Usually the
    entry has one `..` too many and the directory does not exist, so the library is found elsewhere
    or not at all.

    Correct the entry, or remove it: `torchyard repair --rpath policy` does it.
    """
    form = format_of(subject.contents)
    root = form.ROOT
    lib = f"{PREFIX}/lib" if form.IN_ENVIRONMENT else ""

    def leads_up(path: str, entry: str) -> bool:
        home = folders(path, entry)
        is_up = bool(home) and home[0].startswith("..") and home[0] != lib
        return is_up and not path.startswith("..")

    for listed, member, others in _entries(subject, leads_up):
        what = f"looks for libraries in {listed}, above {root}{others}"
        yield Hit(what, member, "remove a `..`, or the entry")


def _entries(
    subject: Subject, choose: Callable[[str, str], bool]
) -> Iterator[tuple[str, str, str]]:
    """Yield the chosen rpath entries, a file that has each, and how many others have it."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for path, binary in resolver_of(subject).binaries.items():
        written = _written(binary)
        bad = [entry for entry in written.split(":") if choose(path, entry)] if written else []
        if bad:
            groups.setdefault(tuple(dict.fromkeys(bad)), []).append(path)
    for entries, paths in groups.items():
        shown = [_shown(paths[0], entry) for entry in entries[:_MOST_ENTRIES]]
        more = len(entries) - _MOST_ENTRIES
        listed = ", ".join(shown) + (f" and {more} more" if more > 0 else "")
        yield listed, resolver_of(subject).names[paths[0]], and_others(len(paths) - 1)


def _shown(path: str, entry: str) -> str:
    """Return an entry for messages, with the folder that it leads to."""
    if not entry:
        return "the current directory (an empty entry)"
    home = folders(path, entry)
    return f"`{entry}` (`{home[0]}`)" if home else f"`{entry}`"


def _outside(path: str, entry: str) -> bool:
    return not folders(path, entry)


@rule("linking-rpath", Severity.ERROR, "it differs from the layout of its kind of package")
def rpath(subject: Subject) -> Iterator[Hit]:
    """A file of a package made by torchyard does not have the rpath of its layout.

    `layouts.toml` defines, for each kind of package, the folders of its own libraries and of those
    of required wheels. Every file gets exactly these directories, in this order; another list means
    that the file was changed afterwards. Packages from elsewhere are not checked by this rule: for
    them `linking-unresolved`, `linking-environment`, `linking-rpath-outside` and
    `linking-rpath-above` apply.

    `torchyard repair --rpath policy` does it.
    """
    wanted = wanted_of(subject)
    if wanted is None:
        return
    for path, binary in resolver_of(subject).binaries.items():
        written = _written(binary)
        right = wanted.policy.rpath(PurePosixPath(path.removeprefix(wanted.root)), written)
        if written != right:
            what = f"its rpath is `{written}`, not `{right}`"
            yield Hit(
                what,
                resolver_of(subject).names[path],
                "write the right one: `torchyard repair --rpath policy`",
            )


@rule("linking-rpath-kind", Severity.WARNING, "LD_LIBRARY_PATH wins, or loses, unexpectedly")
def kind(subject: Subject) -> Iterator[Hit]:
    """Files have an RPATH instead of a RUNPATH, or the other way round.

    Directories in an RPATH are searched before LD_LIBRARY_PATH and also apply to libraries that the
    file loads in turn; those in a RUNPATH are searched after it and apply to the file alone. A
    package whose libraries come with NVIDIA's wheels needs an RPATH, or an LD_LIBRARY_PATH that
    leads to another CUDA breaks it (pytorch#111469), and so does a conda package whose libraries
    come from its channel, as conda's own packages do; all others need a RUNPATH. A file that has
    both ignores its RPATH, and a package that mixes both behaves differently depending on what is
    loaded first. Packages from elsewhere may use either, but the same for all libraries.

    Link with `-Wl,--disable-new-dtags` for an RPATH, or let `torchyard repair` write it.
    """
    kinds: dict[str, list[str]] = {"RPATH": [], "RUNPATH": []}
    for path, binary in resolver_of(subject).binaries.items():
        if binary.rpath and binary.runpath:
            what = "has an RPATH, which its RUNPATH overrides"
            yield Hit(what, resolver_of(subject).names[path], "keep only one of them")
        elif _written(binary):
            kinds["RUNPATH" if binary.runpath else "RPATH"].append(path)
    wanted = wanted_of(subject)
    to_wheels = [path for path in kinds["RUNPATH"] if _leads_to_wheel(subject, path)]
    libraries = {name: [p for p in paths if not is_program(p)] for name, paths in kinds.items()}
    if wanted is not None and not wanted.policy.force_rpath:
        wrong, why = kinds["RPATH"], "has an RPATH instead of a RUNPATH"
    elif wanted is not None:
        wrong, why = kinds["RUNPATH"], "has a RUNPATH instead of an RPATH"
    elif to_wheels or not all(libraries.values()):
        wrong, why = to_wheels, "looks for libraries of other wheels by a RUNPATH, not an RPATH"
    else:
        wrong = libraries["RPATH"]
        why = f"has an RPATH, but `{libraries['RUNPATH'][0]}` and others have a RUNPATH"
    if wrong:
        what = f"{why}{and_others(len(wrong) - 1)}"
        yield Hit(what, resolver_of(subject).names[wrong[0]], "use the same kind for all")


def _leads_to_wheel(subject: Subject, path: str) -> bool:
    """Return whether a file's rpath leads to the folder of a wheel in the tables."""
    there = {row.folder for row in load_layouts().wheels}
    return not there.isdisjoint(folders(path, _written(resolver_of(subject).binaries[path])))
