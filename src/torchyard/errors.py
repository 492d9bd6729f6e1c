"""Every way torchyard can fail: what happened, why, and what to do about it.

One tree, one exit code for each class. The table in ``docs/reference/exit-codes.md`` is
generated from the docstrings below, so each docstring says when a user meets that code.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Span(NamedTuple):
    """A stretch of one line of a file, to put a caret under."""

    file: str
    line: int
    column: int
    length: int
    text: str


class Diagnostic(NamedTuple):
    """One thing that is wrong, its place, and a hint."""

    what: str
    span: Span | None = None
    hint: str | None = None


INTERRUPTED = 130
"""The exit code after Ctrl-C."""

MISSING = "missing"
"""The reason of a StoreError for missing inputs, which have to be built again."""


class TorchyardError(Exception):
    """An unexpected failure inside torchyard; please report it."""

    # `reason` is one word for programs, such as `memory` or `disk`; people read the rest.
    exit_code = 1

    def __init__(
        self,
        what: str,
        *,
        hint: str | None = None,
        span: Span | None = None,
        more: Sequence[Diagnostic] = (),
        reason: str = "",
    ) -> None:
        super().__init__(what)
        self.reason = reason
        self.diagnostics: tuple[Diagnostic, ...] = (Diagnostic(what, span, hint), *more)

    @classmethod
    def of(cls, diagnostics: Sequence[Diagnostic]) -> "TorchyardError":
        """Make one error of several diagnostics."""
        first, *more = diagnostics
        return cls(first.what, hint=first.hint, span=first.span, more=more)


class UsageError(TorchyardError):
    """The command line is wrong: an unknown option, a missing argument, a bad value."""

    exit_code = 2


class ConfigError(TorchyardError):
    """`torchyard.toml` can't be read, or has invalid or contradictory values."""

    exit_code = 3


class PlanError(TorchyardError):
    """The configuration is well-formed but leads to no usable plan, such as an empty one."""

    exit_code = 4


class SelectionError(TorchyardError):
    """A selector or an identifier names nothing that exists."""

    exit_code = 5


class DataError(TorchyardError):
    """A table that is shipped with torchyard is malformed or contradicts itself."""

    exit_code = 6


class HostError(TorchyardError):
    """The machine failed: a file can't be read or written, a program is missing or failed."""

    exit_code = 7


class VanishError(TorchyardError):
    """`plan diff --fail-on-vanish` found packages that the new plan no longer makes."""

    exit_code = 8


class BuildError(TorchyardError):
    """A step of a job failed: the code or its build is wrong, and would be so anywhere."""

    exit_code = 9


class StoreError(TorchyardError):
    """What a job needs is not in the store, or its bytes are not what their name says."""

    exit_code = 10


class BusyError(TorchyardError):
    """Another process is working on the same job; its result will be in the store."""

    exit_code = 11


class DifferenceError(TorchyardError):
    """`rebuild` made a package that is not the same as the one it was given."""

    exit_code = 12


class CheckError(TorchyardError):
    """A package is faulty: `check` found errors, or an extension won't load with it."""

    exit_code = 13


class SmokeError(TorchyardError):
    """`smoke` found a package that does not work."""

    exit_code = 14


class PublishError(TorchyardError):
    """A channel refuses a change: something is missing, unproven, taken, or could be squatted."""

    exit_code = 15


class AuditError(TorchyardError):
    """`channel check` found an index that would fail or mislead its readers."""

    exit_code = 16


class DriftError(TorchyardError):
    """`ci check` found files that are not as generated, `deps` versions that disagree."""

    exit_code = 17


class ElsewhereError(TorchyardError):
    """Not the job's fault: memory, disk or a store is not available. Retry, or elsewhere."""

    exit_code = 75


class StoppedError(TorchyardError):
    """The job was stopped, with `torchyard run cancel` or SIGTERM; the next run continues it."""

    exit_code = 143


def all_errors(root: type[TorchyardError] = TorchyardError) -> Iterator[type[TorchyardError]]:
    """Yield all error classes, for the documentation and tests."""
    yield root
    for child in root.__subclasses__():
        yield from all_errors(child)
