"""`torchyard diagnose`: why a build failed, from its log."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from torchyard.cli.options import (
    file_option,
    json_option,
    names_argument,
    store_url_option,
    work_option,
)
from torchyard.errors import HostError, SelectionError, UsageError
from torchyard.terminal.console import show, talk, write

if TYPE_CHECKING:
    from torchyard.app.diagnose import DiagnosedLog


@click.command("diagnose")
@names_argument("source", required=False, metavar="[LOG|JOB|-]")
@click.option(
    "--passed",
    "passed",
    multiple=True,
    metavar="LOG",
    help="Leave out what this log of a build that passed says, too.",
)
@click.option(
    "--failures",
    "files",
    multiple=True,
    metavar="FILE",
    help="Know the failures in this file, too, before those that torchyard knows.",
)
@click.option("--learn", is_flag=True, help="Draft an entry for --failures from the log.")
@file_option
@store_url_option
@work_option
@json_option
def command(
    *,
    source: str | None,
    passed: tuple[str, ...],
    files: tuple[str, ...],
    learn: bool,
    file: str,
    store_url: str | None,
    work: str | None,
    as_json: bool,
) -> None:
    """Find out why a build failed: the cause, its lines, and what to do.

    LOG is the log of any build: of PyTorch or an extension, by CMake, ninja, nvcc, hipcc, pip,
    conda or CI; of any size, also compressed by gzip. `-` reads standard input. For a JOB, the last
    log is read, and what logs of the same job in the store say, too, is left out. Without LOG or
    JOB, it is that of the last job that runs or failed.
    """
    from torchyard.app.diagnose import (
        STDIN,
        LogLocation,
        diagnose_file,
        diagnose_job,
        known_failures,
    )
    from torchyard.reports.diagnose.document import diagnose_document
    from torchyard.terminal.json_output import encode

    failures = known_failures(files)
    if source is not None and (source == STDIN or Path(source).is_file()):
        found = diagnose_file(source, failures, passed)
    else:
        try:
            found = diagnose_job(source, LogLocation(file, store_url, work), failures)
        except (HostError, SelectionError) as error:
            if source is None:
                raise
            msg = f"there is no log `{source}`, and no such job: {error}"
            raise UsageError(msg, hint=error.diagnostics[0].hint) from error
    if learn:
        _draft(found)
        return
    document = diagnose_document(found.name, found.diagnosis, passed=found.passed)
    if as_json:
        write(encode(document))
    else:
        from torchyard.reports.diagnose.text import diagnose_report

        show(diagnose_report(document))


def _draft(found: "DiagnosedLog") -> None:
    """Print an entry for the log's telling line."""
    from torchyard.config.tables import dump
    from torchyard.run.draft_failure import draft_failure

    cause = found.diagnosis.causes[0]
    if cause.line is None:
        msg = "the log is empty"
        raise UsageError(msg)
    name, entry = draft_failure(cause)
    write(dump({name: entry}, ""))
    if cause.name:
        talk(f"note: this line is known already, as {cause.name}")
    talk("hint: write cause and fix, save it, and try it with --failures FILE")
