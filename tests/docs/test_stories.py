"""The stories of the first pages, each with a typo: the cause is on the screen, of 80 columns.

`test_commands.py` runs the same pages without typos.
"""

import shutil
from contextlib import ExitStack
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.docs.markdown import commands
from tests.docs.pages import PAGES, printed_once_ready, status_of
from tests.docs.prepare import Preparer
from tests.docs.terminal import terminal_in

pytestmark = [pytest.mark.integration, pytest.mark.slow]

_START = "docs/getting-started"


class Typo(NamedTuple):
    """What is typed wrongly on a page, the command that fails, and what names the cause."""

    page: str
    old: str
    new: str
    fails: str
    cause: tuple[str, ...]


TYPOS = {
    "operator": Typo(
        f"{_START}/extension.md",
        "result.numel()",
        "result.numl()",
        "torchyard build *",
        ("csrc/ops.cpp:10", "numl"),
    ),
    "build script": Typo(
        f"{_START}/extension.md",
        '"csrc/ops.cpp"]',
        '"csrc/op.cpp"]',
        "torchyard build *",
        ("csrc/op.cpp",),
    ),
    "cut off wheel": Typo(
        f"{_START}/channel.md",
        "rpds-py",
        "rpds-py; truncate --size 9000 wheels/msgspec-*",
        "torchyard publish *--external*",
        ("msgspec-", "cut off"),
    ),
    "renamed wheel": Typo(
        f"{_START}/channel.md",
        "rpds-py",
        "rpds-py; mv wheels/cffi-* wheels/cfi-1.0-py3-none-any.whl",
        "torchyard publish *--external*",
        ("cfi-1.0-py3-none-any.whl", "cffi"),
    ),
    "cmake": Typo(
        f"{_START}/farm.md",
        "cd ../tinytorch\n",
        "cd ../tinytorch; sed -i s/add_library/add_lib/ c10/CMakeLists.txt\n",
        "torchyard farm submit *",
        ("c10/CMakeLists.txt:2", 'command "add_lib"'),
    ),
    "farm settings": Typo(
        f"{_START}/farm.md",
        "farm init farm\n",
        "farm init farm; sed -i s/^memory/memry/ farm/farm.toml\n",
        "torchyard farm start *",
        ("farm.toml", "memry", "memory"),
    ),
}


@pytest.mark.skipif(not shutil.which("tmux"), reason="there is no tmux")
@pytest.mark.parametrize("name", TYPOS)
def test_the_cause_of_a_typo_is_on_the_screen(
    name: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    typo = TYPOS[name]
    how = PAGES[typo.page]
    for program in how.programs:
        if shutil.which(program) is None:
            pytest.skip(f"there is no {program}")
    with ExitStack() as stack:
        scene = how.prepare(Preparer(tmp_path, stack, tmp_path_factory))
        terminal = stack.enter_context(terminal_in(scene))
        is_planted = False
        for typed in commands(typo.page):
            text = f"{typed.text}\n".replace(typo.old, typo.new, 1).removesuffix("\n")
            is_planted |= text != typed.text
            if fnmatchcase(typed.words, typo.fails):
                terminal.clear()
                assert terminal.type(typed._replace(text=text)) != 0
                break
            status = terminal.type(typed._replace(text=text), until=printed_once_ready(typed))
            assert status == status_of(typed), terminal.screen()
        assert is_planted
        screen = terminal.screen()
        print(screen)
        assert [cause for cause in typo.cause if cause not in screen] == [], screen
