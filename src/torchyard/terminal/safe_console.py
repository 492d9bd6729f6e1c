"""A console of rich that escapes control characters before it adds its own codes."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from torchyard.terminal.untrusted import neutral


class SafeConsole(Console):
    """Escapes control characters in text; keeps rich's own cursor movements."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Return the segments of anything that can be printed."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(neutral(segment.text), segment.style)
