"""Retake the pictures of terminals: `python -m scripts.terminal_pictures [NAME...]`.

Types the commands of the first pages into tmux, 80 columns wide, and writes the last screen of each
story to docs/images/story-*.svg. Takes minutes; needs tmux, and what the pages say.
"""

import re
import sys
from contextlib import ExitStack
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from rich.console import Console
from rich.text import Text
from tests.docs.markdown import commands
from tests.docs.pages import PAGES, printed_once_ready, status_of
from tests.docs.prepare import Preparer
from tests.docs.terminal import COLUMNS, terminal_in
from tests.support.helpers import ROOT

STORIES = {
    "extension": "torchyard build *",
    "channel": "torchyard publish * --external *",
    "farm": "torchyard farm submit *",
}
"""The command of each page whose screen is shown."""

_FONT = re.compile(r"@font-face \{.*?\}", re.DOTALL)
"""Rich's fonts are on another host; readers' own will do."""


def take(name: str, folder: Path) -> str:
    """Type a story up to its command, and return the screen as SVG."""
    page = f"docs/getting-started/{name}.md"
    factory = pytest.TempPathFactory(folder, 3, "all", lambda *_: None, _ispytest=True)
    with ExitStack() as stack:
        scene = PAGES[page].prepare(Preparer(folder, stack, factory))
        terminal = stack.enter_context(terminal_in(scene))
        for typed in commands(page):
            is_shown = fnmatchcase(typed.words, STORIES[name])
            if is_shown:
                terminal.clear()
            if terminal.type(typed, until=printed_once_ready(typed)) != status_of(typed):
                raise SystemExit(terminal.screen())
            if is_shown:
                break
        screen = scene.told(terminal.screen(styled=True)).rstrip()
    console = Console(width=COLUMNS, record=True, file=(folder / "printed").open("w"))
    console.print(Text.from_ansi(screen))
    svg = console.export_svg(title=f"torchyard: {name}", unique_id=f"story-{name}")
    return _FONT.sub("", svg)


def main() -> None:
    for name in sys.argv[1:] or STORIES:
        with TemporaryDirectory() as folder:
            picture = ROOT / f"docs/images/story-{name}.svg"
            picture.write_text(take(name, Path(folder)), encoding="utf-8")
            print(f"wrote {picture}")


if __name__ == "__main__":
    main()
