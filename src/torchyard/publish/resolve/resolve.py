"""Choose the package of a channel that fits a machine, and explain why not the others."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from torchyard.errors import SelectionError
from torchyard.index.entry import Entry
from torchyard.index.section import (
    COMPUTE,
    ChannelSection,
    Elsewhere,
    indexes_for,
    shell_quoted,
)
from torchyard.index.sections import section_called
from torchyard.index.views import torch_label
from torchyard.model.suggest import did_you_mean
from torchyard.model.tables import Tables
from torchyard.model.version import version_numbers
from torchyard.publish.channel.head import Head
from torchyard.publish.channel.layout import key_of, parse_part
from torchyard.publish.channel.reader import ChannelReader
from torchyard.publish.resolve.compatibility import (
    Fitter,
    Grade,
    MachineFacts,
    Misfit,
    Reason,
    flavour_of,
)


class Other(NamedTuple):
    """A file that was not chosen, and the reason."""

    entry: Entry
    misfit: Misfit


class OfferedTorch(NamedTuple):
    """A torch that a channel's files are compiled against, and their computes."""

    torch: str
    """As `torch_label` names it."""
    computes: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.torch} ({', '.join(self.computes)})" if any(self.computes) else self.torch


class Resolution(NamedTuple):
    """The chosen package, if any fits, and all others of the project."""

    project: str
    kind: str
    facts: MachineFacts
    choice: Entry | None
    others: tuple[Other, ...]
    notes: tuple[str, ...] = ()
    elsewhere: Elsewhere = None
    torches: tuple[OfferedTorch, ...] = ()
    """The torches of files that fit except for the torch, the newest first."""

    @property
    def has_wrong_torch(self) -> bool:
        """Whether nothing fits only because of the machine's torch."""
        return self.choice is None and bool(self.torches)


class _Candidate(NamedTuple):
    entry: Entry
    version: Version
    found: Misfit | Grade

    @property
    def public(self) -> Version:
        return Version(self.version.public)

    @property
    def why_yanked(self) -> str:
        """Return why a file was yanked, or ""."""
        if self.entry.yanked is None:
            return ""
        return f"was yanked: {self.entry.yanked}" if self.entry.yanked else "was yanked"

    def rank(self, section: ChannelSection) -> tuple[bool, Version, Misfit | Grade]:
        """Return the order of preference; yanked files come last, even if requested by version."""
        found = self.found
        if isinstance(found, Grade) and section.IGNORES_DRIVERS:
            found = found._replace(support=min(found.support, 1))
        return self.entry.yanked is None, self.public, found


def find_package(
    channel: ChannelReader, wanted: Requirement, kind: str, facts: MachineFacts, tables: Tables
) -> Resolution:
    """Choose the newest version that fits, in the best variant for the machine's GPU."""
    head = channel.head()
    fitter = Fitter(facts, tables)
    section = section_called(kind)
    candidates = [
        _judge(entry, wanted, fitter, section, subdir)
        for subdir, entry in _entries(channel, head, wanted.name, section)
    ]
    fitting = [candidate for candidate in candidates if isinstance(candidate.found, Grade)]
    versions = {candidate.version for candidate in fitting}
    admitted = set(wanted.specifier.filter(versions))  # like installers: finals, if there are any
    allowed = [candidate for candidate in fitting if candidate.version in admitted]
    best = max(allowed, key=lambda candidate: candidate.rank(section), default=None)
    others = tuple(
        Other(candidate.entry, _why_not(candidate, best, admitted=candidate.version in admitted))
        for candidate in candidates
        if best is None or candidate.entry is not best.entry
    )
    notes = [*_notes(candidates, best, facts)] if best else []
    if best:
        notes += [f"was published without {gate}: {why}" for gate, why in best.entry.overrides]
    if best and section.INDEX_PER_VARIANT:
        notes += _whole_index(candidates, best, wanted)
    if best and best.entry.torch and not head.has_torch:
        notes += _torch_from_elsewhere(best.entry, facts, head.elsewhere)
    choice = best.entry if best else None
    torches = _offered_torches(candidates)
    elsewhere = head.elsewhere
    if choice and choice.metadata and not _requires_any(channel, wanted.name, section, choice):
        elsewhere = None
    return Resolution(wanted.name, kind, facts, choice, others, tuple(notes), elsewhere, torches)


def _requires_any(
    channel: ChannelReader, project: str, section: ChannelSection, entry: Entry
) -> bool:
    """Return whether a package requires others, as far as its metadata is readable."""
    part = parse_part(f"{section.NAME}/{canonicalize_name(project)}")
    data = channel.read(f"{key_of(part, entry)}.metadata")
    return data is None or bool(section.requires(entry, data))


def install_commands(answer: Resolution, address: str) -> dict[str, str]:
    """Return the command that installs the package, by program, from the channel's `address`.

    If packages of the channel have external requirements, the commands also name other indexes.
    """
    entry = answer.choice
    if entry is None:
        return {}
    return section_called(answer.kind).commands(answer.project, entry, address, answer.elsewhere)


def torch_command(answer: Resolution) -> str:
    """Return the command that installs a torch with files in the channel."""
    own = answer.facts.torch_compute
    chosen = next((torch for torch in answer.torches if own in torch.computes), answer.torches[0])
    compute = own if own in chosen.computes else chosen.computes[0]
    wanted = f"=={chosen.torch}.*" if chosen.torch[:1].isdecimal() else chosen.torch
    indexes = map(shell_quoted, indexes_for(compute, answer.elsewhere) or ())
    words = [f"--{'extra-' * bool(number)}index-url {url}" for number, url in enumerate(indexes)]
    return " ".join(["pip install", *words, shell_quoted(f"torch{wanted}")])


def _offered_torches(candidates: Sequence[_Candidate]) -> tuple[OfferedTorch, ...]:
    computes: dict[str, set[str]] = {}
    for candidate in candidates:
        if isinstance(candidate.found, Misfit) and candidate.found.reason is Reason.TORCH:
            label = torch_label(candidate.entry.torch)
            computes.setdefault(label, set()).add(flavour_of(candidate.entry)[0])
    newest = sorted(computes, key=version_numbers, reverse=True)
    return tuple(OfferedTorch(label, tuple(sorted(computes[label]))) for label in newest)


def _torch_from_elsewhere(entry: Entry, facts: MachineFacts, elsewhere: Elsewhere) -> Iterator[str]:
    """Yield a note if the torch to be installed may be for another compute."""
    compute = flavour_of(entry)[0]
    is_right = any(COMPUTE in url for url in elsewhere or ())
    if compute and not facts.torch and not is_right:
        yield (
            f"torch{entry.torch} comes from {', '.join(elsewhere or ()) or 'the default index'}; "
            f"if it is not for {compute} there, install a torch for {compute} first"
        )


def _entries(
    channel: ChannelReader, head: Head, project: str, section: ChannelSection
) -> list[tuple[str, Entry]]:
    """Return all files of a project, with the subdir of conda packages."""
    name = str(canonicalize_name(project))
    start = f"{section.NAME}/"
    parts = [part.removeprefix(start) for part in head.parts if part.startswith(start)]
    if section.MANY_PROJECTS:
        every = [(part, e) for part in parts for e in channel.state(head, start + part).entries]
        names = [section.source(part, entry, "").name for part, entry in every]
        known = set(names)
        found = [
            entry for entry, its in zip(every, names, strict=True) if canonicalize_name(its) == name
        ]
    else:
        known = set(parts)
        found = [("", entry) for entry in channel.state(head, start + name).entries]
    if not found:
        msg = f"the channel `{channel.url}` has no {section.PACKAGE} of `{project}`"
        raise SelectionError(msg, hint=did_you_mean(name, sorted(known)) if known else None)
    return found


def _judge(
    entry: Entry, wanted: Requirement, fitter: Fitter, section: ChannelSection, subdir: str
) -> _Candidate:
    try:
        version = Version(entry.version)
    except InvalidVersion:
        misfit = Misfit(Reason.UNREADABLE, f"`{entry.version}` is not a version")
        return _Candidate(entry, Version("0"), misfit)
    if not wanted.specifier.contains(version, prereleases=True):
        return _Candidate(entry, version, Misfit(Reason.SPEC, f"is not {wanted.specifier}"))
    found = _Candidate(entry, version, fitter.try_on(section, subdir, entry))
    if found.why_yanked and not _is_pinned(wanted):
        return found._replace(found=Misfit(Reason.YANKED, found.why_yanked))
    return found


def _is_pinned(wanted: Requirement) -> bool:
    """Return whether an exact version is requested, which allows yanked files (PEP 592)."""
    return any(
        clause.operator == "===" or (clause.operator == "==" and not clause.version.endswith(".*"))
        for clause in wanted.specifier
    )


def _why_not(candidate: _Candidate, best: _Candidate | None, *, admitted: bool) -> Misfit:
    unwanted = isinstance(candidate.found, Misfit) and candidate.found.reason is Reason.SPEC
    if best and candidate.public < best.public and not unwanted:
        return Misfit(Reason.OLDER, f"is older than {best.public}")
    if isinstance(candidate.found, Misfit):
        return candidate.found
    if best and candidate.why_yanked and not best.why_yanked:
        return Misfit(Reason.YANKED, candidate.why_yanked)
    if not admitted:
        return Misfit(Reason.PRERELEASE, "is a pre-release, and there is a final version")
    name = _name(best.entry, candidate.entry) if best else ""
    return Misfit(Reason.LESSER, f"fits, but less well than {name}")


def _name(entry: Entry, other: Entry) -> str:
    """Return what distinguishes a file from others of its version."""
    names = entry.variant, "-".join(filter(None, flavour_of(entry)))
    others = other.variant, "-".join(filter(None, flavour_of(other)))
    parts = (mine for mine, its in zip(names, others, strict=True) if mine and mine != its)
    return next(parts, entry.file)


def _notes(
    candidates: Sequence[_Candidate], best: _Candidate, facts: MachineFacts
) -> Iterator[str]:
    """Yield notes about surprising choices."""
    if best.why_yanked:
        yield f"{best.entry.version} {best.why_yanked}"
    gpu = [c for c in candidates if isinstance(c.found, Grade) and c.found.support]
    if isinstance(best.found, Grade) and best.found.support == 1:
        yield (
            f"the driver is older than that of {best.entry.variant}; programs without features "
            "newer than the driver run all the same (CUDA's minor version compatibility)"
        )
    if facts.has_gpu and best not in gpu and gpu:
        other = max(gpu, key=lambda candidate: (candidate.version, candidate.found))
        yield (
            f"{other.entry.version} is for the GPU, but {best.entry.version} comes before it: "
            "a final version beats a nightly, and a newer one an older, whatever they are for; "
            f"to have it, ask for =={other.entry.version}"
        )


def _whole_index(
    candidates: Sequence[_Candidate], best: _Candidate, wanted: Requirement
) -> Iterator[str]:
    """Yield a note if installers would choose another file from the whole index."""
    seen = {
        candidate.version
        for candidate in candidates
        if isinstance(candidate.found, Grade) or candidate.found.reason is Reason.COMPUTE
    }
    first = max(wanted.specifier.filter(seen))
    if first != best.version:
        yield (
            f"from the index of all variants, installers would take {first}: they compare what "
            "follows the + letter by letter, and ignore GPUs"
        )
