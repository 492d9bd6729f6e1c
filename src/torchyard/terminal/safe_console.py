"""A console of rich that neutralises what it prints, before it adds codes of its own."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from torchyard.terminal.untrusted import neutral


class SafeConsole(Console):
    """Escapes control characters in all text; cursor movements of rich itself stay."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Return the segments of anything that can be printed."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(neutral(segment.text), segment.style)
