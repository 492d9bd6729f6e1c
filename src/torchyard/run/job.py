"""Run one job: fetch its inputs, run its steps, store its result.

A job can be killed at any moment and run again, on any machine, or twice at once: its result is
stored exactly once and completely, or not at all.
"""

import gzip
import os
import platform
import shutil
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from torchyard.config.recipes import find_recipe
from torchyard.errors import MISSING, BuildError, BusyError, StoreError, TorchyardError
from torchyard.host.locks import report_full_disk
from torchyard.host.process_tree import written_bytes
from torchyard.host.untrusted_tree import UntrustedTree, remove_tree
from torchyard.model.canonical import canonical_json
from torchyard.model.config import SandboxKind
from torchyard.model.event import Ended, Listener, Noted, Progress, Started, ended_well
from torchyard.model.job_spec import JobSpec, Task
from torchyard.model.lock import CONDA
from torchyard.model.quantity import show_count, show_size
from torchyard.model.reads import show_reads
from torchyard.model.recipe import Stage
from torchyard.model.result import Result
from torchyard.recipes import steps_of
from torchyard.recipes.publishing import CONFINED, TRUSTED, input_path
from torchyard.run.attest import with_statement
from torchyard.run.conditions import Conditions, choose_sandbox, enclosure_of, with_found_root
from torchyard.run.environment import bring_ninja
from torchyard.run.kept_build import KeptBuild
from torchyard.run.log import Log
from torchyard.run.provision import end_cache, equip_job
from torchyard.run.reuse import needed_of, reuse_result, watch_reads
from torchyard.run.sandbox import usable_links
from torchyard.run.steps import StepContext, StepError, run_steps
from torchyard.run.unfinished import restore_unfinished
from torchyard.run.workdir import INPUTS, OUT, WorkDir
from torchyard.store.claims import Claim, ClaimMonitor
from torchyard.store.local_cache import LocalCache
from torchyard.store.store import Store
from torchyard.store.trees import Writer, fetch_tree
from torchyard.store.unit_memory import remember_units, remembered_units
from torchyard.store.verify import remove_result
from torchyard.toolchain.build_tree import restore_tree
from torchyard.version import __version__

_COMPILES = (Stage.CORE, Stage.BINDINGS)

_POLL = 1.0
"""Seconds between two polls of a job that another process runs."""


class JobOutcome(NamedTuple):
    """The result of a job, and whether this run built it."""

    result: Result
    built: bool


def run_job(spec: JobSpec, store: Store, conditions: Conditions, on_event: Listener) -> JobOutcome:
    """Run a job unless the store has its result; its last event is its outcome."""
    task, workdir = spec.task, WorkDir(conditions.work, spec)
    with _telling_failure(task, on_event):
        is_whole = spec.is_whole or task.stage is Stage.PUBLISH
        if not (spec.is_true and is_whole):
            why = "its fingerprint does not match" if is_whole else "it lacks some inputs"
            msg = f"the spec of {task.id} was changed: {why}"
            raise StoreError(msg, hint="get it again from `torchyard plan`")
        found = store.find(task.fingerprint)
        if found is not None:
            workdir.tidy()
            outcome = JobOutcome(found, built=False)
        else:
            store.check_maker(task.stage)
            with (
                report_full_disk(conditions.work),
                _alone(workdir, conditions, on_event),
                _claimed(workdir, store, conditions, on_event) as found,
            ):
                if found is None and (found := reuse_result(spec, store)) and found.reads:
                    on_event(Noted(job=task.id, text=show_reads(found.reads)))
                if found is not None:
                    workdir.clear()
                    outcome = JobOutcome(found, built=False)
                else:
                    outcome = _build(workdir, store, conditions, on_event)
    on_event(ended_well(outcome.result, built=outcome.built))
    return outcome


@contextmanager
def _telling_failure(task: Task, on_event: Listener) -> Iterator[None]:
    """Emit why a job failed."""
    try:
        yield
    except TorchyardError as error:
        others = [found.what.partition("\n") for found in error.diagnostics]
        known = "; ".join(what for what, _, _ in others if what not in str(error))
        lines = "".join(f"\n{more}" for what, _, more in others if more and what not in str(error))
        on_event(
            Ended(
                job=task.id,
                fingerprint=task.fingerprint,
                outcome="failed",
                code=error.exit_code,
                reason=error.reason,
                why=f"{error}{lines}",
                known=known,
            )
        )
        raise


@contextmanager
def _alone(workdir: WorkDir, conditions: Conditions, on_event: Listener) -> Iterator[None]:
    """Lock a job's directory on this machine; wait for the process that uses it."""
    task = workdir.spec.task
    with workdir.alone(wait=False) as alone:
        if alone:
            yield
            return
    if not conditions.wait:
        msg = f"another process of this machine is working on {task.id}"
        raise BusyError(msg, hint="wait for it, or omit --no-wait")
    on_event(Noted(job=task.id, text="waiting for another process of this machine"))
    with workdir.alone(wait=True):
        yield


@contextmanager
def _claimed(
    workdir: WorkDir, store: Store, conditions: Conditions, on_event: Listener
) -> Iterator[Result | None]:
    """Hold the claim of a job, or return the result that another process made meanwhile."""
    task = workdir.spec.task
    patience = ClaimMonitor(store.objects)
    has_noted = False
    while True:
        found = store.find(task.fingerprint)  # another process may have stored it
        if found is not None:
            yield found
            return
        with Claim(store.objects, task.fingerprint) as claim:
            holder = claim.take()
            if holder is None:
                yield None
                return
        if not conditions.wait:
            msg = f"process {holder.pid} on {holder.host} is working on {task.id}"
            raise BusyError(msg, hint="wait for it, or omit --no-wait")
        if not has_noted:
            on_event(Noted(job=task.id, text=f"waiting for {holder.host}, which works on it"))
            has_noted = True
        time.sleep(_POLL)
        patience.holder(task.fingerprint)


def open_job(
    spec: JobSpec, store: Store, conditions: Conditions, on_event: Listener
) -> StepContext:
    """Prepare the directory of a job with its inputs and tools, and run nothing.

    If the directory of a finished job is gone, its result is restored. The directory of a job that
    another process runs is not changed.
    """
    workdir = WorkDir(conditions.work, spec)
    finished = None if workdir.folder.exists() else store.find(spec.task.fingerprint)
    if workdir.folder.exists():  # as it was left, not as it would be made now
        sandbox = msgspec.structs.replace(conditions.sandbox, kind=workdir.state().sandbox)
        conditions = conditions._replace(sandbox=sandbox)
    with workdir.alone(wait=False) as alone:
        if not alone:
            return _look_into(workdir, store, conditions, on_event)
        context = _open(workdir, store, conditions, on_event, as_left=True)
        if finished is not None:
            _restore(workdir, store, finished, on_event)
        workdir.keep()
        return context


def _look_into(
    workdir: WorkDir, store: Store, conditions: Conditions, on_event: Listener
) -> StepContext:
    """Return the context of a job that another process runs."""
    state = workdir.state()
    if state.tools is None:
        msg = f"another process prepares {workdir.folder} for {workdir.spec.task.id}"
        raise BusyError(msg, hint="try it again when the first step runs")
    text = "is running: if it succeeds, its directory is removed"
    on_event(Noted(job=workdir.spec.task.id, text=text))
    conditions = with_found_root(conditions, workdir.spec, state.sandbox)
    return _context(workdir, store, conditions, state.sandbox, state.tools)


def _restore(workdir: WorkDir, store: Store, result: Result, on_event: Listener) -> None:
    """Restore a job's result for inspection, as its steps left it; no run continues from it."""
    workdir.save(msgspec.structs.replace(workdir.state(), boot=""))
    fetch_tree(store, result.tree, workdir.out)
    recipe, text = find_recipe(result.spec.task.recipe), "its result is restored"
    if recipe and recipe.build_tree and (workdir.out / recipe.build_tree).is_dir():
        restore_tree(workdir.out / recipe.build_tree, workdir.build)
        text = "its result and its build directory are restored"
    workdir.save(msgspec.structs.replace(workdir.state(), steps=result.steps))
    on_event(Noted(job=result.id, text=text))


def _open(  # noqa: PLR0913 - all that a job begins with
    workdir: WorkDir,
    store: Store,
    conditions: Conditions,
    on_event: Listener,
    *,
    as_left: bool = False,
    kept: KeptBuild | None = None,
) -> StepContext:
    task, kind = workdir.spec.task, choose_sandbox(workdir.spec, conditions, on_event)
    conditions = with_found_root(conditions, workdir.spec, kind)
    if finished := restore_unfinished(workdir, store, kind):
        text = f"goes on after {show_count(finished, 'step')} of an earlier run"
        on_event(Noted(job=task.id, text=text))
    workdir.prepare(kind, as_left=as_left)
    _fetch_inputs(workdir, store, conditions.kept(task), on_event)
    if kept and not workdir.state().steps and kept.restore():
        on_event(Noted(job=task.id, text="begins with the objects of the last build"))
    if CONDA not in task.settings:  # its environment has one
        bring_ninja(workdir.folder / "tools")
    tools = dict(equip_job(workdir, kind, conditions, on_event))
    workdir.save(msgspec.structs.replace(workdir.state(), tools=tools))
    return _context(workdir, store, conditions, kind, tools)


def _context(
    workdir: WorkDir,
    store: Store,
    conditions: Conditions,
    kind: SandboxKind,
    tools: Mapping[str, str],
) -> StepContext:
    task = workdir.spec.task
    return StepContext(
        workdir,
        enclosure_of(kind, workdir, conditions, tools, store),
        conditions.slots,
        conditions.file,
        tools,
        store.url,
        foreign=conditions.foreign,
        known=remembered_units(store.objects, task.id) if task.stage in _COMPILES else {},
    )


def _build(
    workdir: WorkDir, store: Store, conditions: Conditions, on_event: Listener
) -> JobOutcome:
    spec, task = workdir.spec, workdir.spec.task
    began, started = time.monotonic(), datetime.now(UTC)
    steps = steps_of(spec)
    on_event(
        Started(
            job=task.id, fingerprint=task.fingerprint, work=str(workdir.folder), pid=os.getpid()
        )
    )
    prepares = partial(Progress, job=task.id, unit="bytes", what="fetching its inputs")
    with written_bytes(lambda done: on_event(prepares(done=done))):
        kept = KeptBuild.of(workdir, store, conditions)
        context = _open(workdir, store, conditions, on_event, kept=kept)
    before = workdir.state()  # steps without a sandbox could change the file
    watch = watch_reads(workdir, store, conditions, context.sandbox)
    context = context._replace(watch=watch)
    with Log(workdir.log) as log:
        log.add(f"== {task.id} {task.fingerprint}, torchyard {__version__}, {platform.node()}")
        for name, value in sorted(context.recorded().items()):
            log.add(f"   {name}={value}")
        try:
            remember = partial(remember_units, store.objects, task.id)
            with usable_links(context.sandbox.kind, workdir):
                used = run_steps(context, steps, log, on_event, remember)
                reads = watch.reads() if watch else None
        except StepError as error:
            from torchyard.run.failure import explained  # noqa: PLC0415 - a failure can wait

            raise explained(error, context, log) from error
        finally:
            cached = end_cache(context)
            if kept:
                kept.keep()
    with UntrustedTree(workdir.job, OUT) as out:
        if task.stage is Stage.PACKAGE and not out.entries():
            msg = f"{task.id}: all steps succeeded, but there is no package in {{out}}"
            raise BuildError(msg, hint="add a step that puts it there")
    if conditions.keep:
        workdir.keep()
    writer = Writer(store)
    made = writer.add_tree(workdir.out)
    result = Result(
        fingerprint=task.fingerprint,
        spec=spec,
        tree=made,
        log=writer.add_file(_packed(workdir.log), "log.gz"),
        steps=used,
        environment=context.recorded(),
        machine=f"{platform.node()} ({platform.system().lower()}-{platform.machine()})",
        started=f"{started:%Y-%m-%dT%H:%M:%SZ}",
        seconds=round(before.seconds + time.monotonic() - began, 3),
        torchyard=__version__,
        facts=before.facts | cached,
        run=uuid.uuid4().hex,
        reads=reads,
    )
    result = store.signed(with_statement(result, writer, workdir.folder))
    if not writer.publish(result):
        result = _compare(result, store, on_event)
    if not conditions.keep:
        if (copies := conditions.kept(task)) is not None:
            copies.take(made, workdir.out)
        if kept:
            kept.take_equipment()
        workdir.remove()
    return JobOutcome(result, built=True)


def _fetch_inputs(
    workdir: WorkDir, store: Store, copies: LocalCache | None, on_event: Listener
) -> None:
    """Fetch the inputs of a job, each completely or not at all."""
    size = fetched = 0
    spec = workdir.spec
    confined: list[str] = []
    trusted = store.trust is not None
    is_asked = spec.task.stage is Stage.PUBLISH and spec.task.text("sandbox") == "required"
    known = {task.fingerprint: task for task in spec.tasks}
    stages = Counter(known[one].stage for one in spec.task.inputs if one in known)
    for fingerprint in spec.task.inputs:
        result = store.get(
            fingerprint, known[fingerprint].id if fingerprint in known else fingerprint
        )
        made = result.spec.task
        is_publication = spec.task.stage is Stage.PUBLISH
        delivered = result.delivery if is_publication else result.tree
        needed = needed_of(delivered, made, spec.task)
        path = f"{INPUTS}/{input_path(made, trusted=trusted) if is_publication else made.stage}"
        if not is_publication and stages[made.stage] > 1:
            path = f"{path}/{made.scope}"
        if is_asked and made.stage is Stage.PACKAGE and store.is_confined(result):
            confined.append(made.cell)
        with UntrustedTree(workdir.job) as tree:
            tree.make_directory(path.rpartition("/")[0])
            if tree.find(path) is not None:
                continue
            part = workdir.folder / f"{INPUTS}.part"  # out of the reach of steps
            remove_tree(part)
            part.mkdir()
            try:
                with copies.in_turn(fingerprint) if copies else nullcontext():
                    fetched += fetch_tree(store, needed, part, copies)
            except StoreError as error:
                remove_result(store, result)
                msg = f"{error}; it was taken out of the store."
                hint = "`torchyard build` makes it again"
                raise StoreError(msg, hint=hint, reason=MISSING) from error
            tree.move_in(part, path)
        size += sum(file.size for file in needed.files)
    notes = {CONFINED: "\n".join(confined).encode()} if is_asked else {}
    if spec.task.stage is Stage.PUBLISH:
        notes[TRUSTED] = canonical_json(store.trust)
    for name, data in notes.items():
        with UntrustedTree(workdir.job, INPUTS) as tree, tree.create_file(name) as file:
            file.write(data)
    if copies and size:
        text = f"{show_size(fetched)} of {show_size(size)} of its inputs had to be fetched"
        on_event(Noted(job=spec.task.id, text=text))


def _packed(path: Path) -> Path:
    """Compress the log without a timestamp, so that equal logs give equal files."""
    packed = path.with_name("log.gz")
    with (
        path.open("rb") as plain,
        packed.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=0) as out,
    ):
        shutil.copyfileobj(plain, out)
    return packed


def _compare(mine: Result, store: Store, on_event: Listener) -> Result:
    """Return the result that another process stored first; note a difference from ours."""
    theirs = store.get(mine.fingerprint, mine.id)
    ours = {file.path: file.digest for file in mine.tree.files}
    if ours != {file.path: file.digest for file in theirs.tree.files}:
        text = "was also built elsewhere, with other bytes: it is not reproducible"
        on_event(Noted(job=mine.id, text=text))
    return theirs
