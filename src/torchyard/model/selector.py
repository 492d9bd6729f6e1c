"""Selectors: the words by which commands choose cells and jobs.

A selector is a set of words. A word is a value (`cp312`, `core`), consecutive parts of a path
(`cu130-mkl/cp312`), or a stage with such parts (`core:*`, `package:*/cp312/*`). Each part may be
a glob; a part `*` stands for any number of parts. Words about the same dimension add, words about
different dimensions narrow. So an identifier selects exactly what it names.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from torchyard.errors import SelectionError
from torchyard.model.matrix import matches
from torchyard.model.recipe import Stage
from torchyard.model.suggest import did_you_mean

_ALL = "*"
_FLAVOUR = "flavour"
_PATHS = (("project", "platform", _FLAVOUR, "python", "package"), ("project", "channel"))
_SEE = "`torchyard plan --list cells` lists the cells, and `torchyard plan --list jobs` the jobs"

Reading = dict[str, str]
"""A reading of a word: its fields, each with a glob."""


class Name(NamedTuple):
    """A cell or a job by its values. Without a stage it is a cell, which has jobs of all stages.

    `project` includes the version, as in identifiers; only publish jobs have a `channel`.
    """

    stage: str = ""
    project: str = ""
    platform: str = ""
    compute: str = ""
    variant: str = ""
    python: str = ""
    package: str = ""
    channel: str = ""

    @classmethod
    def of(cls, stage: Stage | None, project: str, scope: Sequence[str]) -> "Name":
        if stage is Stage.PUBLISH:
            return cls(stage, project, channel="".join(scope))
        return cls(stage or "", project, *scope)

    @classmethod
    def parse(cls, identifier: str) -> "Name":
        """Return the name of a job from its identifier, which may be any text."""
        stage, _, cell = identifier.rpartition(":")
        label, _, path = cell.partition("/")
        if stage == Stage.PUBLISH:
            return cls(stage, label, channel=path)
        platform, *rest = path.split("/")
        flavour = rest[0].partition("-")[::2] if rest else ()
        return cls(stage, label, platform, *flavour, *rest[1:3])


_CELL_FIELDS = frozenset(("platform", "compute", "variant", "python", "package"))
_JOB_FIELDS = frozenset(("stage", "channel"))


class NameSelector:
    """Words, read as parts of existing names.

    Raises:
        SelectionError: A word matches no name, or is ambiguous; or a text is empty, such as an
            unset variable.
    """

    def __init__(self, texts: Iterable[str], names: Iterable[Name]) -> None:
        self._names = list(names)
        columns = map(set, zip(*self._names, strict=True))
        self._columns = dict(zip(Name._fields, columns, strict=False))
        split = [text.split() for text in texts]
        if [] in split:
            msg = "an empty selector would select everything"
            raise SelectionError(msg, hint="leave it out if that is meant; is a variable unset?")
        self.words = [word for words in split for word in words]
        readings = [self._read(word) for word in self.words]
        fields = {field for reading in readings for field in reading}
        self.of_jobs = not fields.isdisjoint(_JOB_FIELDS)
        """Whether a stage or a channel is named, which selects jobs, not cells."""
        self.narrows_cells = not fields.isdisjoint(_CELL_FIELDS)
        self._groups = _grouped(readings)

    def __str__(self) -> str:
        return " ".join(self.words)

    def matches(self, name: Name) -> bool:
        return all(any(_fits(name, reading) for reading in group) for group in self._groups)

    def nothing(self) -> SelectionError:
        """Return the error for a selector without a match."""
        return SelectionError(f"`{self}` matches no cell or job", hint=_SEE)

    def _read(self, word: str) -> Reading:
        stage, colon, path = word.rpartition(":")
        parts = path.split("/")
        found = [
            reading
            for shape in _PATHS
            for start in range(len(shape))
            for reading in self._at(parts, shape[start:])
        ]
        if colon:
            found = [first | rest for first in self._part(stage, "stage") for rest in found]
        else:
            found += self._part(path, "stage")
        found = [reading for reading in found if "channel" not in reading] or found
        if not any(_fits(name, reading) for reading in found for name in self._names):
            raise self._unmatched(word)
        meanings = {tuple(reading): reading for reading in found}
        if len(meanings) > 1:
            msg = f"`{word}` can be read as {' and as '.join(map('-'.join, meanings))}"
            raise SelectionError(msg, hint="be more specific, such as */cp31*/* for Pythons")
        return found[0]

    def _unmatched(self, word: str) -> SelectionError:
        """Return the error for a word without a match, with a hint for its unknown part."""
        stage, colon, path = word.rpartition(":")
        positions = [(stage, ("stage",))] if colon else []
        msg = f"`{word}` matches no cell or job"
        for part, fields in (*positions, *((part, Name._fields) for part in path.split("/"))):
            values = {value for field in fields for value in self._columns.get(field, ()) if value}
            if not any(matches(value, part) for value in values) and not self._part(part, _FLAVOUR):
                return SelectionError(msg, hint=did_you_mean(part, sorted(values)))
        return SelectionError(msg, hint=_SEE)

    def _at(self, parts: Sequence[str], fields: Sequence[str]) -> Iterator[Reading]:
        """Yield the readings of parts as values of the first fields."""
        if not parts:
            yield {}
        elif fields:
            for first in self._part(parts[0], fields[0]):
                for rest in self._at(parts[1:], fields[1:]):
                    yield first | rest
            if parts[0] == _ALL:
                yield from self._at(parts, fields[1:])

    def _part(self, glob: str, field: str) -> list[Reading]:
        """Return the readings of a part as a value of a field; `*` does not restrict it."""
        if glob == _ALL:
            return [{}]
        if field == _FLAVOUR:
            compute, dash, variant = glob.partition("-")
            both = [
                a | b
                for a in self._part(compute, "compute")
                for b in self._part(variant, "variant")
                if dash
            ]
            return [*both, *self._part(glob, "compute"), *self._part(glob, "variant")]
        known = any(value and matches(value, glob) for value in self._columns.get(field, ()))
        return [{field: glob}] if known else []


def named_jobs(jobs: Mapping[str, str], words: Collection[str]) -> list[str]:
    """Return the keys of the jobs that a selector names, by default all.

    Raises:
        SelectionError: There are none.
    """
    names = {key: Name.parse(job) for key, job in jobs.items()}
    selector = NameSelector(words, names.values())
    found = [key for key, name in names.items() if selector.matches(name)]
    if words and not found:
        raise selector.nothing()
    return found


def _grouped(readings: Iterable[Reading]) -> list[list[Reading]]:
    """Group readings: those with a common field are together."""
    groups: list[list[Reading]] = []
    for reading in readings:
        near = [g for g in groups if any(reading.keys() & other.keys() for other in g)]
        groups = [group for group in groups if group not in near]
        groups.append([reading, *(other for group in near for other in group)])
    return groups


def _fits(name: Name, reading: Reading) -> bool:
    return all(
        matches(getattr(name, field), glob)
        for field, glob in reading.items()
        if name.stage or field not in _JOB_FIELDS
    )
