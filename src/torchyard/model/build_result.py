"""How a build went."""

from typing import NamedTuple

from torchyard.errors import BuildError, TorchyardError, all_errors
from torchyard.model.event import Ended
from torchyard.model.quantity import show_count


class BuildResult(NamedTuple):
    """What an engine returns: packages found in the store, and how each job ended."""

    project: str
    packages: list[str]
    """Fingerprints of packages that were in the store before."""
    ends: list[Ended]
    onward: str
    """What to do about jobs that failed or were not begun."""

    @property
    def failed(self) -> list[Ended]:
        return [ended for ended in self.ends if ended.outcome == "failed"]

    @property
    def skipped(self) -> list[Ended]:
        return [ended for ended in self.ends if ended.outcome == "skipped"]

    @property
    def is_interrupted(self) -> bool:
        """Whether the build was stopped before all jobs were begun, and none failed."""
        return bool(self.skipped) and not self.failed

    def error(self) -> TorchyardError | None:
        """Return the error that the failed jobs amount to, or None.

        Its class is that of the jobs' own errors if all have the same, else BuildError: a build
        that only this machine can't do is not a bad one.
        """
        if not self.failed:
            return None
        known = {kind.exit_code: kind for kind in all_errors()}
        codes = {ended.code for ended in self.failed}
        kind = known.get(codes.pop(), BuildError) if len(codes) == 1 else BuildError
        failed = show_count(len(self.failed), "job")
        return kind(f"{failed} failed, {len(self.skipped):,} were not begun", hint=self.onward)
