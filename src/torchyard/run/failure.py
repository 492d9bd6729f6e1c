"""Turn the failure of a step into an error with its cause."""

import shlex
import shutil
import signal
import sys
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from torchyard.config.failures import load_failures
from torchyard.errors import BuildError, Diagnostic, ElsewhereError, TorchyardError, all_errors
from torchyard.host.files import FULL
from torchyard.model.failure import Diagnosis, Kind
from torchyard.model.step import OWN
from torchyard.run.diagnose import diagnose_stream
from torchyard.run.log import Log, lines_before, lines_since
from torchyard.run.steps import StepContext, StepError

_KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)
"""The exit codes of a killed program, and of a shell that ran one."""

_SMOKE = "smoke"
"""The stage of known failures that a step of torchyard itself prints."""

_LINES, _WIDTH = 1000, 2000
"""How much of what a step of torchyard itself printed is shown."""


def explained(error: StepError, context: StepContext, log: Log) -> TorchyardError:
    """Return the error for a failed step: the cause in its log, its kind, and what to do."""
    path, failures = context.place.log, load_failures()
    with path.open("rb") as stream:
        stream.seek(error.mark)
        diagnosis = diagnose_stream(stream, failures).causes[0]
    kind = _kind(context, error, diagnosis)
    is_own = error.step.run[: len(OWN)] == (sys.executable, *OWN[1:])
    if is_own and error.ended.code in _own_classes():  # else what it ran has failed
        failure = failures.get(diagnosis.name or "")
        is_known = failure is not None and failure.stage == _SMOKE
        return _own_error(context, error, kind, _remedy(diagnosis) if is_known else ())
    if error.ended.code in _KILLED:
        diagnosis = _killed(diagnosis)
    with suppress(OSError):  # the disk may be what failed
        log.add(f"== {error}")
    return _error(context, error, diagnosis, kind)


def _own_classes() -> dict[int, type[TorchyardError]]:
    """Return the errors that torchyard prints, by exit code; 1 is that of any program."""
    return {known.exit_code: known for known in all_errors() if known is not TorchyardError}


def _own_error(
    context: StepContext, error: StepError, kind: Kind, remedy: Sequence[Diagnostic]
) -> TorchyardError:
    """Return the error for a step of torchyard itself, which has printed it."""
    said = "\n".join((str(error), *_last_lines(context.place.log, error.mark)))
    own = _own_classes()[error.ended.code] if kind is Kind.BUILD else _class_of(kind)
    return own(said, hint=_look_around(context), more=remedy, reason=kind.value)


def _last_lines(path: Path, mark: int) -> Iterable[str]:
    """Return the end of a log: a step of torchyard itself may pass on what a package prints."""
    return deque((line[:_WIDTH] for line in lines_since(path, mark)), maxlen=_LINES)


def _kind(context: StepContext, error: StepError, diagnosis: Diagnosis) -> Kind:
    """Return the kind of a failure; the state of the machine counts more than the log."""
    if error.ended.code in _KILLED:
        return Kind.MEMORY  # only the OOM killer kills compilers
    if shutil.disk_usage(context.place.folder).free < FULL:
        return Kind.DISK
    network = error.step.network or context.sandbox.kind != "bwrap"
    return diagnosis.kind if diagnosis.elsewhere(network=network) else Kind.BUILD


def _class_of(kind: Kind) -> type[BuildError | ElsewhereError]:
    return BuildError if kind is Kind.BUILD else ElsewhereError


def _flags(context: StepContext) -> str:
    """Return the options that `torchyard shell` needs to find the same directory."""
    file, work = Path(context.file), context.place.folder.parent
    if not file.exists():  # the order was sent without its file
        order = context.place.order_path
        return "".join(
            f" --{name} {shlex.quote(str(value))}"
            for name, value in (("order", order), ("store", context.store), ("work", work))
        )
    flags = "" if file == Path.cwd() / "torchyard.toml" else f" -f {shlex.quote(str(file))}"
    usual = file.parent / ".torchyard" / "work"
    return flags if work == usual else f"{flags} --work {shlex.quote(str(work))}"


def _look_around(context: StepContext) -> str:
    job = context.place.order.task.id
    return f"look around: torchyard shell {job}{_flags(context)}  (log: {context.place.log})"


def _killed(diagnosis: Diagnosis) -> Diagnosis:
    """Return the diagnosis with the explanation of killed steps, whatever the log says."""
    known = load_failures()["killed"]
    return msgspec.structs.replace(diagnosis, title=known.title, cause=known.cause, fix=known.fix)


def _remedy(diagnosis: Diagnosis) -> list[Diagnostic]:
    if not diagnosis.title:
        return []
    return [Diagnostic(diagnosis.title, hint=f"{diagnosis.cause} {diagnosis.fix}")]


def _error(
    context: StepContext, error: StepError, diagnosis: Diagnosis, kind: Kind
) -> TorchyardError:
    before = lines_before(context.place.log, error.mark)
    lines = "".join(f"\n  {before + line.number:>6} | {line.text}" for line in diagnosis.lines)
    more = _remedy(diagnosis)
    if diagnosis.kind is Kind.NETWORK and kind is Kind.BUILD:
        what = "the sandbox gives this step no network"
        more = [Diagnostic(what, hint="write network = true in the step if it has to have one")]
    return _class_of(kind)(
        f"{error}{lines}",
        hint=_look_around(context),
        more=more,
        reason=kind.value,
    )
