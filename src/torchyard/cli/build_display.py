"""Show a build: a board or lines while it runs, a table and errors at its end."""

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from time import time
from typing import TYPE_CHECKING

from torchyard.errors import INTERRUPTED, TorchyardError
from torchyard.model.build_result import BuildResult
from torchyard.model.event import AnyEvent, Ended, Made, encode_event
from torchyard.model.job_spec import short_name
from torchyard.model.quantity import show_count, show_duration, show_size
from torchyard.model.result import File
from torchyard.package.delivered import is_package_name
from torchyard.store.store import Store
from torchyard.store.trees import read_result_log
from torchyard.terminal.console import say, show, write, write_error
from torchyard.terminal.events import printer
from torchyard.terminal.tables import SHORT, folded, number, table, word
from torchyard.terminal.untrusted import neutral, printable
from torchyard.workspace.watch import watching

if TYPE_CHECKING:  # slow to import
    from rich.console import RenderableType

    from torchyard.workspace.build import PreparedBuild


Fold = Callable[[str, Iterable[str]], Iterator[str]]


def fold_style() -> Fold | None:
    """Return the fold syntax of the CI service we run in, or None elsewhere."""
    if os.environ.get("GITHUB_ACTIONS"):
        return github
    if os.environ.get("GITLAB_CI"):
        return gitlab
    return None


def github(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"::group::{title}"
    # A log line must not be interpreted as a workflow command.
    yield from (re.sub(r"^(\s*)::", r"\1: :", line) for line in lines)
    yield "::endgroup::"


def gitlab(title: str, lines: Iterable[str]) -> Iterator[str]:
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", title)
    yield f"\x1b[0Ksection_start:{time():.0f}:{name}[collapsed=true]\r\x1b[0K{title}"
    yield from lines
    yield f"\x1b[0Ksection_end:{time():.0f}:{name}\r\x1b[0K"


_Row = tuple[str, str, float, int, str]
"""A package: job, outcome, seconds, bytes, sha256."""

_DETAILED = 500
"""The most packages from the store to list; reading each costs a request."""


@contextmanager
def build_display(
    store: Store, work: Path | None, *, as_json: bool
) -> Iterator[list[Callable[[AnyEvent], None]]]:
    """Open the display of a running build: JSON, a live board, or lines with folded logs.

    `work` holds the directories of jobs if they run on this machine.
    """
    if as_json:
        yield [lambda event: write(encode_event(event))]
    elif sys.stderr.isatty():
        from torchyard.host.process_tree import family_memory
        from torchyard.terminal.live import LiveBoard

        with LiveBoard(family_memory) as board:
            yield [board]
    else:
        style = fold_style()
        folds = [partial(_fold, style, work, store)] if style else []
        yield [printer(say), *folds]


def _fold(style: Fold, work: Path | None, store: Store, event: AnyEvent) -> None:
    """Print the folded log of a finished job."""
    if isinstance(event, Ended) and event.outcome in ("built", "failed"):
        lines: list[str] = []
        with suppress(OSError, TorchyardError):  # an unreadable log must not hide others
            lines = [neutral(line, colours=True) for line in _read_lines(work, store, event)]
        folded = style(f"log of {printable(event.job)}", lines)
        write_error("".join(f"{line}\n" for line in folded).encode(errors="backslashreplace"))


def _read_lines(work: Path | None, store: Store, ended: Ended) -> list[str]:
    """Read the log of a job: from the store, or from its directory if it failed."""
    text = b""
    if ended.outcome == "built":
        result = store.find(ended.fingerprint)
        text = b"".join(read_result_log(store, result)) if result else b""
    elif work is not None:
        stage = ended.job.partition(":")[0]
        text = (work / short_name(stage, ended.fingerprint) / "log").read_bytes()
    return text.decode(errors="replace").splitlines()


def show_build(build: "PreparedBuild", *, as_json: bool = False) -> None:
    """Run a build, show it, and exit with its outcome."""
    with (
        build_display(build.store, build.work, as_json=as_json) as listeners,
        watching(build.context.folder, listeners) as on_event,
    ):
        result = build.engine.build(build.plan, build.store, build.context, on_event)
    end_build(result, build.store, build.context.folder, as_json=as_json)


def end_build(result: BuildResult, store: Store, folder: Path, *, as_json: bool) -> None:
    """Print what a build made and why jobs failed, and exit with its outcome.

    `folder` holds the error output of jobs. Raises the build's error, and SystemExit if it was
    interrupted.
    """
    if not as_json:
        _print_packages(result, store)
    for ended in result.failed:
        stage = ended.job.partition(":")[0]
        path = folder / f"{short_name(stage, ended.fingerprint)}.errors"
        # A killed process, or a full disk, leaves none.
        write_error((path.read_bytes() if path.exists() else b"") or f"{ended.why}\n".encode())
    if error := result.error():
        raise error
    if result.is_interrupted:
        say(f"stopped with {show_count(len(result.skipped), 'job')} left: {result.onward}")
        sys.exit(0 if result.is_out_of_time else INTERRUPTED)


def _package(files: Iterable[Made | File], size: int, digest: str) -> tuple[int, str]:
    """Return the size and digest of a result's only package, or the given defaults."""
    found = [file for file in files if is_package_name(file.path)]
    return (found[0].size, found[0].digest) if len(found) == 1 else (size, digest)


def package_table(project: str, rows: Iterable[_Row]) -> "RenderableType":
    """List the packages of a project with their outcomes."""
    columns = (folded(f"package of {project}"), word("outcome"), number("time"), number("size"))
    made = table((*columns, word("sha256")))
    styles = {"failed": "red", "skipped": "yellow", "cached": "dim"}
    for job, outcome, seconds, size, digest in rows:
        made.add_row(
            job.partition("/")[2],
            outcome,
            show_duration(seconds) if seconds else "–",
            show_size(size) if size else "–",
            digest[:SHORT] or "–",
            style=styles.get(outcome, ""),
        )
    return made


def _print_packages(result: BuildResult, store: Store) -> None:
    """Print the table of the requested packages."""
    made = [end for end in result.ends if end.job.startswith("package:")]
    rows: list[_Row] = [
        (end.job, end.outcome, end.seconds, *_package(end.made, end.size, end.digest))
        for end in made
        if end.outcome in ("built", "failed")
    ]
    packages = result.packages + [end.fingerprint for end in made if end.outcome == "cached"]
    if len(packages) <= _DETAILED:
        rows += [
            (r.id, "cached", 0.0, *_package(r.tree.files, r.size, r.tree.digest))
            for r in store.results(packages)
        ]
    if rows:
        show(package_table(result.project, sorted(rows)))
    if len(packages) > _DETAILED:
        write(f"{len(packages):,} packages were in the store: `torchyard store ls` lists them\n")
