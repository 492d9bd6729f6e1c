"""What a person gets to read when a step has failed."""

import shutil
import sys

from torchyard.config.failures import load_failures
from torchyard.errors import BuildError, Diagnostic, ElsewhereError, TorchyardError
from torchyard.model.failure import Kind, Telling
from torchyard.run.log import Log, lines_since
from torchyard.run.steps import Bench, StepError
from torchyard.run.telling import telling_lines

OWN = (sys.executable, "-m", "torchyard")

_FULL = 50 << 20
"""A disk with less room than this is full: no compiler gets far with it."""


def explained(error: StepError, bench: Bench, log: Log) -> TorchyardError:
    """Turn the failure of a step into what the log tells, whose fault it is, and how to go on."""
    lines = lines_since(bench.place.log, error.mark)
    if error.step.run[:3] == OWN:  # what torchyard says is told already
        return BuildError("\n".join((str(error), *lines)))
    told = telling_lines(lines, load_failures())
    log.add(f"== {error}")
    return _error(bench, error, told, _kind(bench, error, told))


def _kind(bench: Bench, error: StepError, told: Telling) -> Kind:
    """What the failure is the fault of: what happened to the machine counts more than words."""
    if error.ended.code < 0:
        return Kind.MEMORY  # nobody but the kernel kills compilers
    if shutil.disk_usage(bench.place.folder).free < _FULL:
        return Kind.DISK
    if told.kind is Kind.NETWORK and bench.sandbox.kind == "bwrap" and not error.step.network:
        return Kind.BUILD  # it would want a network on any machine
    return told.kind


def _error(bench: Bench, error: StepError, told: Telling, kind: Kind) -> TorchyardError:
    task = bench.place.order.task
    lines = "".join(f"\n  {line.number:>6} | {line.text}" for line in told.lines)
    more = [Diagnostic(told.title, hint=f"{told.cause} {told.fix}")] if told.title else []
    if told.kind is Kind.NETWORK and kind is Kind.BUILD:
        what = "the sandbox gives this step no network"
        more = [Diagnostic(what, hint="write network = true in the step if it has to have one")]
    made = BuildError if kind is Kind.BUILD else ElsewhereError
    return made(
        f"{error}{lines}",
        hint=f"look around: torchyard shell {task.id}  (log: {bench.place.log})",
        more=more,
        reason=kind.value,
    )
