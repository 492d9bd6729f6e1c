"""Why something was built again."""

from collections.abc import Sequence
from typing import Literal

from torchyard.insight.job_cause import NEVER
from torchyard.model.values import Reported
from torchyard.terminal.tables import Lines, indented

_NAMED = 3
"""So many steps on the way are named in the sentence."""


class WhyReport(Reported):
    """`torchyard explain rebuild --json`: the first cause, and what was built again because of it.

    `pending` is true if it is not built again yet.
    """

    what: str
    cause: str
    way: Sequence[str]
    pending: bool = False
    version: Literal[1] = 1

    @property
    def sentence(self) -> str:
        """The same for people: `a.o would be made again because a.h is newer`."""
        again = "" if self.cause == NEVER else " again"
        made = f"will be made{again}" if self.pending else "was made"
        return f"{self.what} {made} because {self.cause}{self._by_way_of()}"

    def _by_way_of(self) -> str:
        if len(self.way) <= _NAMED:
            return f", by way of {', '.join(self.way)}" if self.way else ""
        return f", by way of {self.way[0]}, {len(self.way) - 2:,} more, and {self.way[-1]}"


def explain_rebuild_text(report: WhyReport) -> Lines:
    yield indented(report.sentence, 0)
