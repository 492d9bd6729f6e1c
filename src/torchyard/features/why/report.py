"""Why something was rebuilt."""

from collections.abc import Sequence
from typing import Literal

from torchyard.insight.job_cause import NEVER
from torchyard.model.values import Reported
from torchyard.terminal.tables import Lines, indented

_NAMED = 3
"""The most intermediate steps to name in the sentence."""


class WhyReport(Reported):
    """`torchyard explain rebuild --json`: the first cause, and the files or jobs rebuilt for it.

    `pending` is true if the rebuild is still to come.
    """

    what: str
    cause: str
    way: Sequence[str]
    pending: bool = False
    version: Literal[1] = 1

    @property
    def sentence(self) -> str:
        """Return this as text: `a.o will be made because a.h is newer`."""
        again = "" if self.cause == NEVER else " again"
        made = f"will be made{again}" if self.pending else "was made"
        return f"{self.what} {made} because {self.cause}{self._by_way_of()}"

    def _by_way_of(self) -> str:
        if len(self.way) <= _NAMED:
            return f", through {', '.join(self.way)}" if self.way else ""
        return f", through {self.way[0]}, {len(self.way) - 2:,} more, and {self.way[-1]}"


def explain_rebuild_text(report: WhyReport) -> Lines:
    yield indented(report.sentence, 0)
