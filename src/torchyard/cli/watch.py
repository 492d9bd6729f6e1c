"""Telling everybody how a build goes: people, programs, CI services, `status`."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

from torchyard.app.clock import current_moment
from torchyard.app.locations import EVENTS, home_of
from torchyard.app.redact import redacting
from torchyard.cli.main import INTERRUPTED
from torchyard.engines.engine import Build, Listen
from torchyard.errors import BuildError, TorchyardError, all_errors
from torchyard.host.detached import begin_record, is_written
from torchyard.model.event import AnyEvent, Ended, encode_event
from torchyard.model.job_spec import short_name
from torchyard.model.quantity import show_count
from torchyard.store.store import Store
from torchyard.store.trees import read_log
from torchyard.terminal.console import say, show, write, write_error
from torchyard.terminal.events import printer
from torchyard.terminal.folds import Fold, fold_style

_REMEMBERED = 20
"""So many builds are known to `status`, with what their jobs said."""

_DETAILED = 500
"""Up to so many packages that were in the store are listed; reading each costs a request."""


def new_folder(file: str) -> Path:
    """Where `status` looks for a build that this process begins now."""
    moment = current_moment().replace("-", "").replace(":", "")
    return Path(home_of(file), "builds", f"{moment}-{os.getpid()}")


def watch(
    build: Callable[[Listen], Build],
    store: Store,
    folder: Path,
    *,
    work: Path | None = None,
    as_json: bool,
) -> None:
    """Let an engine build, and tell everybody how it goes and went.

    `folder` is the build's own; `work` has the directories of jobs, if they run here.
    """
    with ExitStack() as stack:
        listeners = list(_listeners(stack, folder, work, store, as_json=as_json))

        def listen(event: AnyEvent) -> None:
            for listener in list(listeners):
                try:
                    listener(event)
                except (OSError, TorchyardError, SystemExit):
                    listeners.remove(listener)  # hours of work do not end with who watches them

        done = build(redacting(listen))
    if not as_json:
        _print_table(store, done)
    _raise_failures(done, folder)


def _listeners(
    stack: ExitStack, folder: Path, work: Path | None, store: Store, *, as_json: bool
) -> Iterator[Listen]:
    """Everybody who wants to hear of events: the file for `status`, and people or programs."""
    record: list[Callable[[bytes], object]] = []

    def keep(event: AnyEvent) -> None:
        if not record:
            _forget(folder.parent)
            folder.mkdir(parents=True, exist_ok=True)
            handle = begin_record(folder / EVENTS)  # locked for as long as this process lives
            record.append(stack.enter_context(os.fdopen(handle, "wb", buffering=0)).write)
        record[0](encode_event(event))

    yield keep
    if as_json:
        yield lambda event: write(encode_event(event))
    elif sys.stderr.isatty():
        from torchyard.host.process_tree import memory_of
        from torchyard.terminal.live import LiveBoard

        yield stack.enter_context(LiveBoard(memory_of))
    else:
        yield printer(say)
        style = fold_style()
        if style:
            yield partial(_fold, style, work, store)


def _forget(builds: Path) -> None:
    """Remove what is known of all but the last builds."""
    for folder in sorted(builds.glob("*-*/"))[: 1 - _REMEMBERED]:
        if not is_written(folder / EVENTS):
            shutil.rmtree(folder, ignore_errors=True)


def _fold(style: Fold, work: Path | None, store: Store, event: AnyEvent) -> None:
    """Print the log of a job that ended, folded away."""
    if isinstance(event, Ended) and event.outcome in ("built", "failed"):
        lines: list[str] = []
        with suppress(OSError, TorchyardError):  # one that can't be had now says nothing of others
            lines = _read_lines(work, store, event)
        for line in style(f"log of {event.job}", lines):
            say(line)


def _read_lines(work: Path | None, store: Store, ended: Ended) -> list[str]:
    """The log of a job: from the store, or where it failed."""
    text = b""
    if ended.outcome == "built":
        result = store.find(ended.fingerprint)
        text = b"".join(read_log(store, result)) if result else b""
    elif work is not None:
        stage = ended.job.partition(":")[0]
        text = (work / short_name(stage, ended.fingerprint) / "log").read_bytes()
    return text.decode(errors="replace").splitlines()


def _print_table(store: Store, done: Build) -> None:
    """What there is now of the packages that were asked for."""
    made = [end for end in done.ends if end.job.startswith("package:")]
    rows: list[tuple[str, str, float, int, str]] = [
        (end.job, end.outcome, end.seconds, end.size, end.digest)
        for end in made
        if end.outcome in ("built", "failed")
    ]
    packages = done.packages + [end.fingerprint for end in made if end.outcome == "cached"]
    if len(packages) <= _DETAILED:
        rows += [(r.id, "cached", 0.0, r.size, r.tree.digest) for r in store.results(packages)]
    if rows:
        from torchyard.reports.build.text import build_report

        show(build_report(done.project, sorted(rows)))
    if len(packages) > _DETAILED:
        write(f"{len(packages):,} packages were in the store: `torchyard store ls` lists them\n")


def _raise_failures(done: Build, folder: Path) -> None:
    """Fail as the jobs did: with what each of them said."""
    failed = [ended for ended in done.ends if ended.outcome == "failed"]
    skipped = sum(ended.outcome == "skipped" for ended in done.ends)
    for ended in failed:
        stage = ended.job.partition(":")[0]
        said = folder / f"{short_name(stage, ended.fingerprint)}.errors"
        # On a full disk, or if it was killed, its process could not say anything itself.
        write_error((said.read_bytes() if said.exists() else b"") or f"{ended.why}\n".encode())
    if failed:
        msg = f"{show_count(len(failed), 'job')} failed, {skipped:,} were not begun"
        raise _common_class(failed)(msg, hint=done.onward)
    if skipped:
        say(f"stopped with {show_count(skipped, 'job')} left: {done.onward}")
        sys.exit(INTERRUPTED)


def _common_class(failed: Sequence[Ended]) -> type[TorchyardError]:
    """What all failures have in common: a build that only this machine can't do is no bad build."""
    known = {kind.exit_code: kind for kind in all_errors()}
    codes = {ended.code for ended in failed}
    return known.get(codes.pop(), BuildError) if len(codes) == 1 else BuildError
