"""The outcome of a build."""

from typing import NamedTuple

from torchyard.errors import BuildError, TorchyardError, all_errors
from torchyard.model.event import Ended
from torchyard.model.quantity import show_count


class BuildResult(NamedTuple):
    """What an engine returns: cached packages, and the outcome of each job."""

    project: str
    packages: list[str]
    """Fingerprints of packages that were already in the store."""
    ends: list[Ended]
    onward: str
    """A hint how to continue with jobs that failed or did not start."""
    is_out_of_time: bool = False
    """Whether it stopped because of a time limit."""

    @property
    def failed(self) -> list[Ended]:
        return [ended for ended in self.ends if ended.outcome == "failed"]

    @property
    def skipped(self) -> list[Ended]:
        return [ended for ended in self.ends if ended.outcome == "skipped"]

    @property
    def is_interrupted(self) -> bool:
        """Whether the build was stopped before all jobs had started, without failures."""
        return bool(self.skipped) and not self.failed

    def error(self) -> TorchyardError | None:
        """Return the error of a build with failed jobs, or None.

        Its class is that of the jobs' errors if all are equal, else BuildError: a build that
        fails only on this machine may be correct.
        """
        if not self.failed:
            return None
        kinds = {kind.exit_code: kind for kind in all_errors()}
        codes = {ended.code for ended in self.failed}
        kind = kinds.get(codes.pop(), BuildError) if len(codes) == 1 else BuildError
        failed = show_count(len(self.failed), "job")
        return kind(f"{failed} failed, {len(self.skipped):,} were not begun", hint=self.onward)
