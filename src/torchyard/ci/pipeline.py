"""Jobs of any provider: which part of a plan each runs, where, and after which jobs."""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from shlex import quote
from typing import NamedTuple

from torchyard.errors import PlanError
from torchyard.host.files import dirname, join
from torchyard.model.ci import CiPipeline

_REPLACED = re.compile(r"\$[({\[]|<<|[\r\n]")
"""Expressions of providers: `${{ … }}`, `$(…)`, `$[…]`, `<< … >>`."""

PART = "PART"
"""The variable that holds a row of a matrix."""


class Wave(StrEnum):
    """The kind of results that a job makes; jobs of a wave do not need each other."""

    SOURCE = "source"
    CORE = "core"
    PACKAGES = "packages"
    SMOKE = "smoke"


class CiMachine(NamedTuple):
    """Where a job runs: its runner's labels, its image, and commands that prepare it."""

    labels: tuple[str, ...]
    image: str = ""
    prepare: tuple[str, ...] = ()


class CiJob(NamedTuple):
    """A provider's job, or one job for each of its `parts`.

    `select` are the selectors of `torchyard build`, with `$PART` for a row. Work that can exceed
    the provider's time limit is continued by equal jobs, which `round` counts.
    """

    name: str
    wave: Wave
    select: tuple[str, ...]
    skip: tuple[str, ...]
    parts: tuple[str, ...]
    needs: tuple[str, ...]
    waves: tuple[Wave, ...]
    """The waves whose results the job needs."""
    machine: CiMachine
    seconds: int
    round: int = 1
    rounds: int = 1

    @property
    def results(self) -> tuple[str, ...]:
        """Globs over the jobs of the plan that make its results; bindings are intermediate."""
        if self.wave is Wave.PACKAGES:
            return tuple(f"{glob.removesuffix('/*')}*" for glob in self.select)
        return self.select

    @property
    def is_packing(self) -> bool:
        """Whether it is the last round of a job that makes packages."""
        return self.wave is Wave.PACKAGES and self.round == self.rounds

    def scope(self, part: str) -> str:
        """Return the common path of the jobs of the plan that a part runs."""
        glob = self.select[0].partition("*/")[2].removesuffix("/*")
        return glob.replace(f"${PART}", part)


class Pipeline(NamedTuple):
    """The jobs of a pipeline, each after the jobs that it needs."""

    settings: CiPipeline
    file: str
    install: str
    pythons: tuple[str, ...]
    """The versions that jobs need; the last one runs torchyard."""
    jobs: tuple[CiJob, ...]
    publisher: CiMachine
    carried: bool
    """Whether files carry results from job to job, because the store is a directory."""
    channel_folder: str
    """The repository's directory to publish to; empty for an address."""
    is_partial: bool
    """Whether packages are left out of the subset because no machine can build them."""
    minutes: int
    """How long a job may take."""
    variant: str
    """The file's name for the third field of cells."""
    pins: dict[str, str]
    """The file's own pins of actions."""

    @property
    def name(self) -> str:
        return self.settings.name

    def pythons_of(self, job: CiJob) -> tuple[str, ...]:
        """Return the versions that a job needs; the last one runs torchyard."""
        return self.pythons[-1:] if job.wave in (Wave.SOURCE, Wave.CORE) else self.pythons

    @property
    def package_folder(self) -> str:
        """The directory for the packages of jobs, inside torchyard's home directory."""
        return join(dirname(self.file), ".torchyard/packages")

    def prepare_commands(self, job: CiJob) -> Iterator[str]:
        """Yield the commands that prepare a machine without a provider's action."""
        yield from job.machine.prepare
        yield self.install
        if pythons := self.pythons_of(job)[:-1]:
            yield " ".join(["uv", "python", "install", *pythons])

    def impact_command(self, provider: str, base: str) -> str:
        """Return the command that finds which of a provider's jobs run."""
        words = ["torchyard", "ci", "impact", f'"${base}.."', *file_words(self.file)]
        return " ".join([*words, "--provider", provider, "--pipeline", self.name])

    def narrowed(self, wanted: Mapping[str, tuple[str, ...]]) -> "Pipeline":
        """Return a pipeline reduced to the given jobs and parts."""
        jobs = (
            job._replace(
                parts=wanted[job.name], needs=tuple(name for name in job.needs if name in wanted)
            )
            for job in self.jobs
            if job.name in wanted
        )
        return self._replace(jobs=tuple(jobs))

    def build_command(self, job: CiJob) -> str:
        """Return the command that runs a job's part of the plan."""
        words = ["torchyard", "build", *self._words()]
        if self.settings.subset is not None:
            words += ["--subset", literal(self.settings.subset)]
        if job.round < job.rounds:
            words += ["--time-limit", f'"{_duration(safe_seconds(self.minutes))}"']
        for glob in job.skip:
            words += ["--skip", f'"{glob}"']
        if job.is_packing:
            words += ["-o", literal(self.package_folder)]
        return " ".join([*words, *(f'"{glob}"' for glob in job.select)])

    def pull_commands(self, waves: tuple[Wave, ...]) -> Iterator[str]:
        """Yield the commands that put carried results into the store."""
        if self.carried:
            for wave in waves:
                yield self._store_command("pull", wave)

    def is_handed_on(self, job: CiJob) -> bool:
        """Return whether a job's results are carried to another job or published."""
        return self.carried and (bool(self.settings.channel) or job.name not in self.leaves())

    def push_commands(self, job: CiJob) -> Iterator[str]:
        """Yield the command that exports the job's own results from the store."""
        if self.is_handed_on(job):
            push = self._store_command("push", job.wave)
            globs = () if job.rounds > 1 else job.results  # it may have finished none
            yield " ".join([push, *(f'"{glob}"' for glob in globs)])

    def leaves(self) -> tuple[str, ...]:
        """Return the jobs that no other job needs."""
        needed = {name for job in self.jobs for name in job.needs}
        return tuple(job.name for job in self.jobs if job.name not in needed)

    def publish_commands(self) -> Iterator[str]:
        """Yield the commands that publish all packages at once."""
        yield from self.pull_commands(self.waves)
        words = ["torchyard", "publish", *self._words()]
        words += ["--to", literal(self.settings.channel or "")]
        yield " ".join([*words, *(["--partial"] if self.is_partial else [])])

    @property
    def waves(self) -> tuple[Wave, ...]:
        """The waves of all jobs."""
        return tuple(dict.fromkeys(job.wave for job in self.jobs))

    def _store_command(self, verb: str, wave: Wave) -> str:
        return " ".join(["torchyard", "store", verb, *self._words(), carried_folder(wave)])

    def _words(self) -> list[str]:
        """Return the options for the configuration and the pipeline's store."""
        store = self.settings.store
        return [*file_words(self.file), *(["--store", literal(store)] if store else [])]


def file_words(file: str) -> list[str]:
    """Return the option for a configuration; none for the default file."""
    return [] if file == "torchyard.toml" else ["-f", literal(file)]


def literal(word: str) -> str:
    """Quote a word of a command; refuse text that the provider would expand."""
    if _REPLACED.search(word):
        msg = f"`{word}` would be replaced by a CI provider, as an expression"
        raise PlanError(msg, hint="choose another name")
    return quote(word)


def carried_folder(wave: Wave) -> str:
    """Return the directory that carries the results of a wave."""
    return f".torchyard/carried/{wave}"


def _duration(seconds: int) -> str:
    return f"{seconds} s" if seconds % 60 else f"{seconds // 60} min"


def safe_seconds(minutes: int) -> int:
    """Return the seconds that a job may work before it has to save its results."""
    return minutes * 60 * 9 // 10
