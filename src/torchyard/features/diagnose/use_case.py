"""Diagnose a log, or the log of a job."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

from torchyard.config.failures import check_failures, load_failures
from torchyard.config.tables import parse_data
from torchyard.errors import HostError, SelectionError, UsageError
from torchyard.features.diagnose.report import DiagnoseReport
from torchyard.host.files import read_text
from torchyard.model.failure import Failure, LogDiagnosis
from torchyard.model.job_spec import JobSpec
from torchyard.run.diagnose import diagnose_pieces, templates_of
from torchyard.run.log_text import pieces_of
from torchyard.run.workdir import WorkDir
from torchyard.store.select import select_results
from torchyard.store.store import Store, Unusable
from torchyard.store.trees import read_result_log
from torchyard.workspace.left_job import find_left_job
from torchyard.workspace.locations import open_store, work_directory

STDIN = "-"
_PASSED = 3
"""The most logs of a passed job to compare with."""


class LogLocation(NamedTuple):
    """The locations of jobs' logs: the work directory and the store."""

    file: str
    store: str | None
    work: str | None


def diagnose_build(
    source: str | None = None,
    *,
    passed: Sequence[str] = (),
    files: Sequence[str] = (),
    file: str = "torchyard.toml",
    store: str | None = None,
    work: str | None = None,
) -> DiagnoseReport:
    """Find the cause of a failed build.

    Args:
        source: A log, `-` for standard input, or a job; by default, the last that runs or failed.
        passed: Logs of passed builds, whose lines are ignored.
        files: Files with more known failures.
        file: The configuration.
        store: The store, if it is not the file's.
        work: The work directory of jobs.
    """
    failures = known_failures(files)
    if source is not None and (source == STDIN or Path(source).is_file()):
        return diagnose_file(source, failures, passed)
    try:
        return diagnose_job(source, LogLocation(file, store, work), failures)
    except (HostError, SelectionError) as error:
        if source is None:
            raise
        msg = f"there is no log `{source}`, and no such job: {error}"
        raise UsageError(msg, hint=error.diagnostics[0].hint) from error


def _report(log: str, found: LogDiagnosis, passed: int) -> DiagnoseReport:
    return DiagnoseReport(
        log=log, lines=found.total, passed=passed, causes=found.causes, lost=found.lost
    )


def known_failures(files: Iterable[str] = ()) -> Mapping[str, Failure]:
    """Return known failures; those in files come first, and replace others of their name."""
    own: dict[str, Failure] = {}
    for file in files:
        own |= parse_data(file, read_text(file), Failure)
    check_failures(own)
    return own | {name: row for name, row in load_failures().items() if name not in own}


def diagnose_file(
    log: str, failures: Mapping[str, Failure], passed: Iterable[str] = ()
) -> DiagnoseReport:
    """Diagnose a log; `-` is standard input.

    Lines that are also in logs of `passed` are ignored.
    """
    templates: set[str] = set()
    greens = list(passed)
    for green in greens:
        with _open(green) as stream:
            templates |= templates_of(pieces_of(stream), failures)
    with _open(log) as stream:
        found = diagnose_pieces(pieces_of(stream), failures, passed=templates)
    return _report(log, found, len(greens))


def diagnose_job(
    job: str | None, location: LogLocation, failures: Mapping[str, Failure]
) -> DiagnoseReport:
    """Diagnose the last log of a job, ignoring lines of its logs in the store.

    None means the last job that runs or failed.

    Raises:
        UsageError: The job has no log.
    """
    spec, config = find_left_job(job, location.file, location.work)
    store = open_store(location.store, location.file, config)
    greens = list(islice(_passed_logs(spec, store), _PASSED))
    templates = {line for log in greens for line in templates_of(log, failures)}
    with _job_log(spec, location, store) as pieces:
        found = diagnose_pieces(pieces, failures, passed=templates)
    return _report(spec.task.id, found, len(greens))


@contextmanager
def _open(log: str) -> Iterator[BinaryIO]:
    if log == STDIN:
        yield sys.stdin.buffer
        return
    try:
        with Path(log).open("rb") as stream:
            yield stream
    except OSError as error:
        msg = f"the log `{log}` can't be read: {error.strerror}"
        raise UsageError(msg) from error


def _passed_logs(spec: JobSpec, store: Store) -> Iterator[Iterator[bytes]]:
    """Yield logs of the same job with other inputs."""
    unusable: Unusable = {}
    for result in select_results(store, (), unusable):
        if result.id == spec.task.id and result.fingerprint != spec.task.fingerprint:
            yield read_result_log(store, result)


@contextmanager
def _job_log(spec: JobSpec, location: LogLocation, store: Store) -> Iterator[Iterator[bytes]]:
    """Open the log in the work directory, or else the result's."""
    root = Path(location.work or work_directory(location.file))
    path = WorkDir(root, spec).log
    if path.exists():
        with path.open("rb") as stream:
            yield pieces_of(stream)
    elif result := store.find(spec.task.fingerprint):
        yield read_result_log(store, result)
    else:
        msg = f"there is no log of `{spec.task.id}`: it has not been run with this file, or its"
        msg += " directory was removed"
        raise UsageError(msg, hint=f"torchyard run {spec.task.id} runs it")
