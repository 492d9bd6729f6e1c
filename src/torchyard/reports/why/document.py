"""What `torchyard why --json` prints."""

from typing import Literal

from torchyard.insight.job_cause import NEVER, RebuildCause
from torchyard.reports.document import JsonDocument

_NAMED = 3
"""So many steps on the way are named in the sentence."""


class WhyDocument(JsonDocument, kw_only=True):
    """`torchyard why --json`: the first cause, and what was built again on the way from there.

    `pending` is true if it is not built again yet.
    """

    version: Literal[1] = 1
    what: str
    pending: bool
    cause: str
    way: list[str]

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


def why_document(what: str, cause: RebuildCause, *, pending: bool = False) -> WhyDocument:
    """Describe a cause."""
    return WhyDocument(what=what, pending=pending, cause=cause.first, way=list(cause.way))
