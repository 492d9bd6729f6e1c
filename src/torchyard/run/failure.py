"""What a person gets to read when a step has failed."""

import shlex
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path

import msgspec

from torchyard.config.failures import load_failures
from torchyard.errors import BuildError, Diagnostic, ElsewhereError, TorchyardError, all_errors
from torchyard.model.failure import Kind, Telling
from torchyard.model.job_spec import ORDER
from torchyard.model.step import OWN
from torchyard.run.diagnose import telling_lines
from torchyard.run.log import Log, lines_before, lines_since
from torchyard.run.steps import StepContext, StepError

_KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)
"""How a program ends that was killed, and how a shell does that ran one."""

_FULL = 50 << 20
"""A disk with less room than this is full: no compiler gets far with it."""


def explained(error: StepError, bench: StepContext, log: Log) -> TorchyardError:
    """Turn the failure of a step into what the log tells, whose fault it is, and how to go on."""
    path = bench.place.log
    told = telling_lines(lines_since(path, error.mark), load_failures())
    kind = _kind(bench, error, told)
    if error.step.run[: len(OWN)] == (sys.executable, *OWN[1:]):  # what we say explains itself
        said = "\n".join((str(error), *lines_since(path, error.mark)))
        classes = {known.exit_code: known for known in all_errors()}
        own = classes.get(error.ended.code) if kind is Kind.BUILD else None
        return (own or _class_of(kind))(said, hint=_look_around(bench), reason=kind.value)
    if error.ended.code in _KILLED:
        told = _killed(told)
    with suppress(OSError):  # the disk may be what failed
        log.add(f"== {error}")
    return _error(bench, error, told, kind)


def _kind(bench: StepContext, error: StepError, told: Telling) -> Kind:
    """What the failure is the fault of: what happened to the machine counts more than words."""
    if error.ended.code in _KILLED:
        return Kind.MEMORY  # nobody but the kernel kills compilers
    if shutil.disk_usage(bench.place.folder).free < _FULL:
        return Kind.DISK
    network = error.step.network or bench.sandbox.kind != "bwrap"
    return told.kind if told.elsewhere(network=network) else Kind.BUILD


def _class_of(kind: Kind) -> type[BuildError | ElsewhereError]:
    return BuildError if kind is Kind.BUILD else ElsewhereError


def _flags(bench: StepContext) -> str:
    """What the command needs besides the job's name to find the same place."""
    file, work = Path(bench.file), bench.place.folder.parent
    if not file.exists():  # somebody has sent the order, and nothing else
        order = bench.place.folder / ORDER
        return "".join(
            f" --{name} {shlex.quote(str(value))}"
            for name, value in (("order", order), ("store", bench.store), ("work", work))
        )
    flags = "" if file == Path.cwd() / "torchyard.toml" else f" -f {shlex.quote(str(file))}"
    usual = file.parent / ".torchyard" / "work"
    return flags if work == usual else f"{flags} --work {shlex.quote(str(work))}"


def _look_around(bench: StepContext) -> str:
    job = bench.place.order.task.id
    return f"look around: torchyard shell {job}{_flags(bench)}  (log: {bench.place.log})"


def _killed(told: Telling) -> Telling:
    """What is known about steps that are killed, whatever their logs say."""
    known = load_failures()["killed"]
    return msgspec.structs.replace(told, title=known.title, cause=known.cause, fix=known.fix)


def _error(bench: StepContext, error: StepError, told: Telling, kind: Kind) -> TorchyardError:
    before = lines_before(bench.place.log, error.mark)
    lines = "".join(f"\n  {before + line.number:>6} | {line.text}" for line in told.lines)
    more = [Diagnostic(told.title, hint=f"{told.cause} {told.fix}")] if told.title else []
    if told.kind is Kind.NETWORK and kind is Kind.BUILD:
        what = "the sandbox gives this step no network"
        more = [Diagnostic(what, hint="write network = true in the step if it has to have one")]
    return _class_of(kind)(
        f"{error}{lines}",
        hint=_look_around(bench),
        more=more,
        reason=kind.value,
    )
