"""`torchyard build`: the whole plan, on this machine."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import click

from torchyard.cli.identified import identified
from torchyard.cli.main import INTERRUPTED
from torchyard.cli.options import (
    file_option,
    json_option,
    sandbox_option,
    set_option,
    skip_option,
    store_option,
    subset_option,
    work_option,
)
from torchyard.cli.places import absolute, cache_of, home_of, open_store
from torchyard.cli.quiet import quietly
from torchyard.config.credentials import take_credentials
from torchyard.config.load import load_yard
from torchyard.config.tables import load_tables
from torchyard.engines.local import Build, Listen, Options, build
from torchyard.errors import BuildError, PlanError, TorchyardError, UsageError, all_errors
from torchyard.host.machine import platform_name, processors
from torchyard.host.process import is_running
from torchyard.model.event import Ended, Happening, encode_event
from torchyard.model.order import short_name
from torchyard.model.quantity import show_count
from torchyard.model.recipe import Stage
from torchyard.model.yard import Yard
from torchyard.plan.build import make_plan
from torchyard.plan.graph import Plan
from torchyard.plan.select import Selection
from torchyard.report.console import say, show, write, write_error
from torchyard.report.events import printer
from torchyard.report.folds import Fold, fold_style
from torchyard.store.store import Store
from torchyard.store.trees import fetch_all, read_log

_REMEMBERED = 20
"""So many builds are known to `status`, with what their jobs said."""

_DETAILED = 500
"""Up to so many packages that were in the store are listed; reading each costs a request."""


@click.command("build")
@click.argument("select", nargs=-1)
@file_option
@set_option
@subset_option
@skip_option
@store_option
@work_option
@sandbox_option
@click.option(
    "--jobs", type=click.IntRange(1), help="Run so many jobs at once, at most one for each slot."
)
@click.option("--slots", type=click.IntRange(1), help="Run so many compilers at once, in all.")
@click.option("--keep-going", is_flag=True, help="After a failure do all that does not need it.")
@click.option("--output", "-o", metavar="DIR", help="Put the packages there when all is done.")
@click.option("--any-platform", is_flag=True, help="Build for other platforms than this one.")
@json_option
def command(
    *,
    select: tuple[str, ...],
    file: str,
    changes: tuple[str, ...],
    subset: str | None,
    skip: tuple[str, ...],
    store_url: str | None,
    work: str | None,
    sandbox: str | None,
    jobs: int | None,
    slots: int | None,
    keep_going: bool,
    output: str | None,
    any_platform: bool,
    as_json: bool,
) -> None:
    """Build the plan, or what SELECT names of it: a value (cu130), a cell or a job (core:*).

    Results that the store has are not made again. All jobs share one pool of compile slots, as
    many as there are processors, and fewer while memory is short. Ctrl-C stops cleanly, a second
    one at once; the same command goes on later. With --json, events are printed as they happen.
    """
    take_credentials()
    yard = identified(load_yard(file, changes), file)
    plan = make_plan(yard, load_tables(), Selection(subset, select, skip))
    _refuse_foreign(plan, any_platform=any_platform)
    _refuse_inside(yard, file, output)
    _refuse_proof(yard, file)
    store = open_store(store_url, file, yard)
    home = Path(home_of(file))
    slots = slots or processors()
    options = Options(
        folder=home / "builds" / f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}",
        work=Path(absolute(work)) if work else home / "work",
        file=absolute(file),
        sandbox=sandbox,
        cache=cache_of(file, yard),
        copies=yard.copies,
        jobs=min(jobs or slots, slots),
        slots=slots,
        keep_going=keep_going,
    )
    build_plan(plan, store, options, as_json=as_json)
    if output:
        _deliver(plan, store, Path(output))


def _refuse_foreign(plan: Plan, *, any_platform: bool) -> None:
    """Refuse what this machine can't be trusted to build."""
    here = platform_name()
    foreign = {scope[0] for scope in plan.columns.scopes if len(scope) > 1} - {here}
    if foreign and not any_platform:
        msg = f"this machine is {here}, and the plan is also for {', '.join(sorted(foreign))}"
        hint = f"choose: torchyard build {here}; or --any-platform if your steps can do that"
        raise PlanError(msg, hint=hint)


def _refuse_inside(yard: Yard, file: str, output: str | None) -> None:
    """Refuse to put packages where they would be source the next time."""
    if output and yard.source.path is not None:
        source = Path(absolute(file)).parent / yard.source.path
        if Path(absolute(output)).is_relative_to(source.resolve()):
            msg = f"`{output}` is inside the source directory, and would be part of the next build"
            raise UsageError(msg, hint="choose a directory beside it, or one under .torchyard")


def _refuse_proof(yard: Yard, file: str) -> None:
    """Refuse a policy or tests that are wrong at once, and not after hours of compiling."""
    from torchyard.checks.policy import load_policy, parse_policy
    from torchyard.checks.smoke.known import load_known
    from torchyard.checks.smoke.suite import read_suite

    if Stage.CHECK not in yard.steps and yard.check.text:
        parse_policy(yard.check.policy, yard.check.text)
    elif Stage.CHECK not in yard.steps:
        load_policy(yard.check.policy)
    if Stage.SMOKE not in yard.steps and yard.smoke.folder:
        tests = Path(absolute(file)).parent / yard.smoke.folder
        read_suite(tests)
        load_known(tests)


def build_plan(plan: Plan, store: Store, options: Options, *, as_json: bool) -> None:
    """Build a plan, and tell everybody how it goes and went."""
    with ExitStack() as stack:
        listeners = list(_listeners(stack, options, store, as_json=as_json))

        def listen(event: Happening) -> None:
            for listener in list(listeners):
                try:
                    listener(event)
                except (OSError, TorchyardError, SystemExit):
                    listeners.remove(listener)  # hours of work do not end with who watches them

        done = build(plan, store, options, quietly(listen))
    if not as_json:
        _print_table(plan, store, done)
    _raise_failures(done.ends, options)


def _listeners(
    stack: ExitStack, options: Options, store: Store, *, as_json: bool
) -> Iterator[Listen]:
    """Everybody who wants to hear of events: the file for `status`, and people or programs."""
    record: list[Callable[[bytes], object]] = []

    def keep(event: Happening) -> None:
        if not record:
            _forget(options.folder.parent)
            options.folder.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context((options.folder / "events.jsonl").open("wb", buffering=0))
            record.append(file.write)
        record[0](encode_event(event))

    yield keep
    if as_json:
        yield lambda event: write(encode_event(event))
    elif sys.stderr.isatty():
        from torchyard.host.child import memory_of
        from torchyard.report.live import LiveBoard

        yield stack.enter_context(LiveBoard(memory_of))
    else:
        yield printer(say)
        style = fold_style()
        if style:
            yield partial(_fold, style, options, store)


def _forget(builds: Path) -> None:
    """Remove what is known of all but the last builds."""
    for folder in sorted(builds.glob("*-*/"))[: 1 - _REMEMBERED]:
        pid = folder.name.rpartition("-")[2]
        if pid.isdigit() and not is_running(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)


def _fold(style: Fold, options: Options, store: Store, event: Happening) -> None:
    """Print the log of a job that ended, folded away."""
    if isinstance(event, Ended) and event.outcome in ("built", "failed"):
        stage = event.job.partition(":")[0]
        path = options.work / short_name(stage, event.fingerprint) / "log"
        lines: list[str] = []
        if event.outcome == "built":
            result = store.find(event.fingerprint)
            text = b"".join(read_log(store, result)) if result else b""
            lines = text.decode(errors="replace").splitlines()
        elif path.exists():
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        for line in style(f"log of {event.job}", lines):
            say(line)


def _print_table(plan: Plan, store: Store, done: Build) -> None:
    """What there is now of the packages that were asked for."""
    made = [end for n, end in done.ends.items() if plan.job(n).stage is Stage.PACKAGE]
    rows: list[tuple[str, str, float, int, str]] = [
        (end.job, end.outcome, end.seconds, end.size, end.digest)
        for end in made
        if end.outcome in ("built", "failed")
    ]
    found = [plan.job(number) for number in done.cached]
    packages = [job.fingerprint for job in found if job.stage is Stage.PACKAGE]
    packages += [end.fingerprint for end in made if end.outcome == "cached"]
    if len(packages) <= _DETAILED:
        rows += [(r.id, "cached", 0.0, r.size, r.tree.digest) for r in store.results(packages)]
    if rows:
        from torchyard.inspect.build_report import build_report

        show(build_report(plan.label, sorted(rows)))
    if len(packages) > _DETAILED:
        write(f"{len(packages):,} packages were in the store: `torchyard store ls` lists them\n")


def _raise_failures(ends: dict[int, Ended], options: Options) -> None:
    """Fail as the jobs did: with what each of them said."""
    failed = [ended for ended in ends.values() if ended.outcome == "failed"]
    skipped = sum(ended.outcome == "skipped" for ended in ends.values())
    for ended in failed:
        stage = ended.job.partition(":")[0]
        said = options.folder / f"{short_name(stage, ended.fingerprint)}.errors"
        # On a full disk, or if it was killed, its process could not say anything itself.
        write_error((said.read_bytes() if said.exists() else b"") or f"{ended.why}\n".encode())
    if failed:
        msg = f"{show_count(len(failed), 'job')} failed, {skipped:,} were not begun"
        hint = "the same command goes on from here; --keep-going does what it can"
        raise _common_class(failed)(msg, hint=hint)
    if skipped:
        say(f"stopped with {show_count(skipped, 'job')} left: the same command goes on from here")
        sys.exit(INTERRUPTED)


def _common_class(failed: Sequence[Ended]) -> type[TorchyardError]:
    """What all failures have in common: a build that only this machine can't do is no bad build."""
    known = {kind.exit_code: kind for kind in all_errors()}
    codes = {ended.code for ended in failed}
    return known.get(codes.pop(), BuildError) if len(codes) == 1 else BuildError


def _deliver(plan: Plan, store: Store, folder: Path) -> None:
    """Put the files of all packages into a directory."""
    packages = (job for job in plan.jobs() if job.stage is Stage.PACKAGE)
    fetch_all(store, [store.get(job.fingerprint, job.identifier) for job in packages], folder)
