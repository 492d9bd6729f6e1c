"""Help is one page, and texts name commands and options that exist."""

import re
from collections.abc import Iterator

import click
import pytest
from tests.support.command_tree import all_commands
from tests.support.helpers import ROOT, Command

from torchyard.cli.engine_options import engine_options
from torchyard.cli.lazy_group import help_section, sentence
from torchyard.engines.registry import engine_names, find_engine

COMMANDS = all_commands()
TOP = {name: command for name, command in COMMANDS.items() if name and " " not in name}
GROUPS = [name for name, command in COMMANDS.items() if isinstance(command, click.Group)]
TEXTS = [
    path
    for pattern in ("docs/**/*.md", "*.md", "examples/**/*", "src/**/*.*", "farm/src/**/*.*")
    for path in sorted(ROOT.glob(pattern))
    if path.suffix in (".md", ".py", ".toml", ".html", ".yml")
]
CALL = re.compile(r"(?:`|^\s*\$ |^\s*- run: )torchyard ([^`\n;|&)]*)", re.MULTILINE)


def test_help_fits_a_screen() -> None:
    """Each of them is one more that a newcomer has to understand."""
    assert len(TOP) <= 31


@pytest.mark.parametrize("name", TOP)
def test_a_command_declares_its_section(name: str) -> None:
    assert help_section(TOP[name])


@pytest.mark.parametrize("name", GROUPS)
def test_no_sentence_is_cut_or_wrapped(
    name: str, torchyard: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = torchyard(*name.split(), "--help").out.splitlines()
    below = (c for words, c in COMMANDS.items() if words and words.rpartition(" ")[0] == name)
    for command in below:
        assert any(line.endswith(f"  {sentence(command)}") for line in shown), sentence(command)


def calls(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each call of torchyard that a text names: the words of the command, and its options."""
    for line in CALL.findall(text):
        words = re.split(r"[\s=]+", line.replace('"', " "))
        known = [n for n in range(len(words) + 1) if " ".join(words[:n]) in COMMANDS]
        name = " ".join(words[: max(known)])
        is_group = isinstance(COMMANDS[name], click.Group)
        follows = next(iter(words[max(known) :]), "")
        if is_group and re.fullmatch(r"[a-z][a-z-]*", follows):
            name = f"{name} {follows}".strip()
        if name == "develop":
            name = "develop begin"
        end = words.index("--") if "--" in words else len(words)
        yield name, [word for word in words[:end] if re.fullmatch(r"--[a-z][a-z-]*", word)]


def options(command: click.Command) -> set[str]:
    """Return the options of a command, and those of engines that it may have."""
    found = {
        text
        for p in command.get_params(click.Context(command))
        for text in (*p.opts, *p.secondary_opts)
    } | {"--help"}
    if "--engine" in found:
        for name in engine_names():
            found |= {text for option in engine_options(find_engine(name)) for text in option.opts}
    return found


def test_texts_name_commands_and_options_that_exist() -> None:
    wrong = []
    for path in TEXTS:
        for name, given in calls(path.read_text(encoding="utf-8")):
            command = COMMANDS.get(name)
            if name.split()[:1] in (["tool"], ["shell"]):  # hidden; options of another program
                continue
            missing = set(given) - options(command) if command else {"no such command"}
            wrong += [f"{path.relative_to(ROOT)}: torchyard {name}: {found}" for found in missing]
    assert not wrong, "\n".join(wrong)
