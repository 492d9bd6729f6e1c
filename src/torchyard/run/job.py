"""One job from beginning to end: what it needs is fetched, its steps run, its result is stored.

Safe to kill at any moment and to run again, here or elsewhere, or twice at once: the result is
in the store whole, once, or not at all.
"""

import gzip
import os
import platform
import shutil
import time
import uuid
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from torchyard.errors import MISSING, BuildError, BusyError, StoreError
from torchyard.host.locks import report_full_disk
from torchyard.model.config import Sandbox
from torchyard.model.event import Noted, Started
from torchyard.model.job_spec import JobSpec, Task
from torchyard.model.quantity import show_size
from torchyard.model.recipe import Stage
from torchyard.model.result import Result
from torchyard.recipes import compiles_by_recipe, runs_only_ours, steps_of
from torchyard.run.environment import bring_ninja
from torchyard.run.log import Log
from torchyard.run.provision import end_cache, equip_job
from torchyard.run.steps import Report, StepContext, StepError, run_steps
from torchyard.run.workdir import WorkDir
from torchyard.store.claims import Claim, ClaimMonitor, Owner
from torchyard.store.local_cache import LocalCache
from torchyard.store.store import Store
from torchyard.store.trees import Writer, fetch_tree
from torchyard.store.verify import remove_result
from torchyard.version import __version__

COPIES = "copies"
"""The directory, beside those of jobs, in which files of the store are kept."""

_POLL = 1.0
"""Seconds between two looks at whether somebody else's job is done."""


class Conditions(NamedTuple):
    """How a job is run, apart from what it is: nothing of this changes the result."""

    work: Path
    file: str
    slots: str | None = None
    sandbox: Sandbox = Sandbox()
    wait: bool = True
    keep: bool = False
    cache: str | None = None
    copies: int = 0

    def kept(self, task: Task) -> LocalCache | None:
        """Files of the store that stay on this machine, as far as a job leaves room for them."""
        spare = task.needs.disk or 0
        return LocalCache(self.work / COPIES, self.copies, spare) if self.copies else None


class Outcome(NamedTuple):
    """The result of a job, and whether it had to be made."""

    result: Result
    built: bool


def run_job(order: JobSpec, store: Store, conditions: Conditions, report: Report) -> Outcome:
    """Make the result of a job, unless the store has it."""
    order = _made_in(order, conditions.sandbox)
    task = order.task
    if not order.is_true:
        msg = f"the order of {task.id} was changed: its fingerprint is that of something else"
        raise StoreError(msg, hint="take it from `torchyard plan` anew")
    place = WorkDir(conditions.work, order)
    found = store.find(task.fingerprint)
    if found is not None:
        place.tidy()
        return Outcome(found, built=False)
    with report_full_disk(conditions.work):
        with place.alone(wait=False) as alone:
            if alone:
                return _claim_and_run(place, store, conditions, report)
        if not conditions.wait:
            msg = f"another process of this machine is working on {task.id}"
            raise BusyError(msg, hint="wait for it, or leave --no-wait out")
        report(Noted(job=task.id, text="waiting for another process of this machine"))
        with place.alone(wait=True):
            return _claim_and_run(place, store, conditions, report)


def _made_in(order: JobSpec, sandbox: Sandbox) -> JobSpec:
    """An order that says in what kind of sandbox it was carried out; a root's path is nobody's.

    A core's build is of use elsewhere only if it was made at a path that it has there, too.
    """
    kind = "view" if sandbox.kind == "none" and compiles_by_recipe(order.task) else sandbox.kind
    return msgspec.structs.replace(order, sandbox=Sandbox(kind=kind, root=order.sandbox.root))


def _claim_and_run(place: WorkDir, store: Store, conditions: Conditions, report: Report) -> Outcome:
    """Do a job that nobody else does; wait for whoever does it."""
    task = place.order.task
    patience = ClaimMonitor(store.objects)
    told = False
    while True:
        found = store.find(task.fingerprint)  # somebody may have made it while we waited
        if found is not None:
            place.clear()
            return Outcome(found, built=False)
        with Claim(store.objects, task.fingerprint) as claim:
            holder = claim.take()
            if holder is None:
                return _run(place, store, conditions, report)
        if not conditions.wait:
            raise _busy(task, holder)
        if not told:
            report(Noted(job=task.id, text=f"waiting for {holder.host}, who works on it"))
            told = True
        time.sleep(_POLL)
        patience.holder(task.fingerprint)


def _busy(task: Task, holder: Owner) -> BusyError:
    msg = f"process {holder.pid} on {holder.host} is working on {task.id}"
    return BusyError(msg, hint="wait for it, or leave --no-wait out")


def open_job(order: JobSpec, store: Store, conditions: Conditions, report: Report) -> StepContext:
    """Make the place where a job works, with everything that it needs, and run nothing."""
    place = WorkDir(conditions.work, order)
    if place.folder.exists():  # as it was left, and not as it would be made now
        kind = place.state().sandbox
        conditions = conditions._replace(sandbox=Sandbox(kind=kind, root=order.sandbox.root))
    place.order = _made_in(order, conditions.sandbox)
    with place.alone(wait=False) as alone:
        if not alone:
            msg = f"{order.task.id} is running in {place.folder}"
            raise BusyError(msg, hint="wait for it, or stop it")
        bench = _open(place, store, conditions, report)
        place.keep()
        return bench


def _open(place: WorkDir, store: Store, conditions: Conditions, report: Report) -> StepContext:
    place.prepare()
    _fetch_inputs(place, store, conditions.kept(place.order.task), report)
    bring_ninja(place.folder / "tools")
    # What runs nothing of the project's has to reach what a sandbox shuts out.
    sandbox = Sandbox(kind=place.order.sandbox.kind, root=conditions.sandbox.root)
    if runs_only_ours(place.order.task):
        sandbox = Sandbox()
    tools = equip_job(place, sandbox, conditions.cache, report)
    return StepContext(place, sandbox, conditions.slots, conditions.file, tools, store.url)


def _run(place: WorkDir, store: Store, conditions: Conditions, report: Report) -> Outcome:
    order, task = place.order, place.order.task
    began, started = time.monotonic(), datetime.now(UTC)
    steps = steps_of(order)
    report(
        Started(job=task.id, fingerprint=task.fingerprint, work=str(place.folder), pid=os.getpid())
    )
    bench = _open(place, store, conditions, report)
    with Log(place.log) as log:
        log.add(f"== {task.id} {task.fingerprint}, torchyard {__version__}, {platform.node()}")
        for name, value in sorted(bench.recorded().items()):
            log.add(f"   {name}={value}")
        try:
            used = run_steps(bench, steps, log, report)
        except StepError as error:
            from torchyard.run.failure import explained  # noqa: PLC0415 - a failure can wait

            raise explained(error, bench, log) from error
        finally:
            cached = end_cache(bench)
    if task.stage is Stage.PACKAGE and not any(place.out.iterdir()):
        msg = f"{task.id}: all steps ended well, but there is no package in {{out}}"
        raise BuildError(msg, hint="let a step put it there")
    if conditions.keep:
        place.keep()
    writer = Writer(store)
    made = writer.add_tree(place.out)
    result = Result(
        fingerprint=task.fingerprint,
        order=order,
        tree=made,
        log=writer.add_file(_packed(place.log), "log.gz"),
        steps=used,
        environment=bench.recorded(),
        machine=f"{platform.node()} ({platform.system().lower()}-{platform.machine()})",
        started=f"{started:%Y-%m-%dT%H:%M:%SZ}",
        seconds=round(time.monotonic() - began, 3),
        torchyard=__version__,
        facts={"sandbox": bench.sandbox.kind, **cached},
        run=uuid.uuid4().hex,
    )
    if not writer.publish(result):
        result = _compare(result, store, report)
    if not conditions.keep:
        if (copies := conditions.kept(task)) is not None:
            copies.take(made, place.out)
        place.remove()
    return Outcome(result, built=True)


def _fetch_inputs(place: WorkDir, store: Store, copies: LocalCache | None, report: Report) -> None:
    """Lay out the results that a job needs, each of them whole or not at all."""
    size = fetched = 0
    order = place.order
    known = {task.fingerprint: task for task in order.tasks}
    for fingerprint in order.task.inputs:
        result = store.get(
            fingerprint, known[fingerprint].id if fingerprint in known else fingerprint
        )
        folder = place.inputs / result.order.task.stage
        if order.task.stage is Stage.PUBLISH:
            folder /= result.order.task.scope
        if folder.exists():
            continue
        part = folder.with_name(f"{folder.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        try:
            with copies.in_turn(fingerprint) if copies else nullcontext():
                fetched += fetch_tree(store, result.tree, part, copies)
        except StoreError as error:
            remove_result(store, result)
            msg = f"{error}; it was taken out of the store."
            hint = "`torchyard build` makes it again"
            raise StoreError(msg, hint=hint, reason=MISSING) from error
        part.rename(folder)
        size += result.size
    if copies and size:
        text = f"{show_size(fetched)} of {show_size(size)} of its inputs had to be fetched"
        report(Noted(job=order.task.id, text=text))


def _packed(path: Path) -> Path:
    """The log, compressed; without times, so that equal logs are equal files."""
    packed = path.with_name("log.gz")
    with (
        path.open("rb") as plain,
        packed.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=0) as out,
    ):
        shutil.copyfileobj(plain, out)
    return packed


def _compare(mine: Result, store: Store, report: Report) -> Result:
    """Somebody else was first: theirs is the result. Say so if ours is not the same."""
    theirs = store.get(mine.fingerprint, mine.id)
    ours = {file.path: file.digest for file in mine.tree.files}
    if ours != {file.path: file.digest for file in theirs.tree.files}:
        text = "was also built elsewhere, with other bytes: it is not reproducible"
        report(Noted(job=mine.id, text=text))
    return theirs
