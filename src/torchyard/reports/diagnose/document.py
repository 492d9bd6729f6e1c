"""What `torchyard diagnose` prints with `--json`."""

from typing import Literal

from torchyard.model.failure import Certainty, Diagnosis, Found, Kind, LogDiagnosis, LogLine
from torchyard.model.values import Reported


class LogLineDocument(Reported, kw_only=True):
    """A line of the log; numbers start at 1."""

    number: int
    text: str


class LogCauseDocument(Reported, kw_only=True):
    """Something that the log shows: the name of the known failure, none if it is unknown.

    `where` is the file and line that it is about, `add` lines for an extension's torchyard.toml.
    """

    name: str | None
    title: str | None
    certainty: Certainty
    kind: Kind
    found: Found
    line: LogLineDocument | None
    lines: list[LogLineDocument]
    times: int
    unit: str | None
    where: str | None
    cause: str | None
    fix: str | None
    add: str | None
    refs: list[str]


class DiagnoseDocument(Reported, kw_only=True):
    """`torchyard diagnose --json`: why a build failed, the most probable cause first.

    `lost` is what was asked for and left out without an error. `passed` is the number of logs of
    builds that passed, whose lines do not count.
    """

    version: Literal[1] = 1
    log: str
    lines: int
    passed: int
    causes: list[LogCauseDocument]
    lost: list[LogCauseDocument]


def diagnose_document(log: str, diagnosis: LogDiagnosis, *, passed: int) -> DiagnoseDocument:
    return DiagnoseDocument(
        log=log,
        lines=diagnosis.total,
        passed=passed,
        causes=[_cause(cause) for cause in diagnosis.causes],
        lost=[_cause(cause) for cause in diagnosis.lost],
    )


def _cause(cause: Diagnosis) -> LogCauseDocument:
    return LogCauseDocument(
        name=cause.name,
        title=cause.title,
        certainty=cause.certainty,
        kind=cause.kind,
        found=cause.found,
        line=_line(cause.line) if cause.line else None,
        lines=[_line(line) for line in cause.lines],
        times=cause.times,
        unit=cause.unit,
        where=f"{cause.where.file}:{cause.where.line}" if cause.where else None,
        cause=cause.cause,
        fix=cause.fix,
        add=cause.extension.add if cause.extension else None,
        refs=list(cause.refs),
    )


def _line(line: LogLine) -> LogLineDocument:
    return LogLineDocument(number=line.number, text=line.text)
