"""Options mean one thing in all commands, and errors with --json are JSON."""

import json
from pathlib import Path

import msgspec
import pytest
from tests.support.command_tree import all_commands
from tests.support.helpers import SMALL, Command, make_project

from torchyard.terminal.json_output import ErrorDocument

COMMANDS = all_commands()
JSON = [
    name
    for name, command in COMMANDS.items()
    if any("--json" in parameter.opts for parameter in command.params)
]


@pytest.mark.parametrize("name", JSON)
def test_errors_with_json_are_json(name: str, torchyard: Command, tmp_path: Path) -> None:
    """An unknown option is an error of every command; the exit code stays."""
    failed = torchyard(*name.split(), "--json", "--no-such-option")
    assert failed.code == 2
    document = msgspec.json.decode(failed.out, type=ErrorDocument)
    assert document.exit_code == 2
    assert "no-such-option" in document.errors[0].what.lower()
    assert failed.err.startswith("error: "), "people read standard error"


def test_the_document_has_what_people_read(torchyard: Command, tmp_path: Path) -> None:
    file = tmp_path / "torchyard.toml"
    file.write_text(SMALL.replace('"cp311", "cp312"]', '"cp311", "cp321"]'), encoding="utf-8")
    failed = torchyard("plan", "--json", "-f", file)
    assert failed.code == 3
    (found,) = json.loads(failed.out)["errors"]
    assert found["what"] == "unknown python `cp321`"
    assert found["hint"].startswith("did you mean `cp312`?")
    assert (found["file"], found["line"]) == ("torchyard.toml", 13)
    assert torchyard("plan", "-f", file).out == "", "without --json, nothing is printed"
    graph = torchyard("graph", "--json", "core:nothing", "-f", file)
    assert json.loads(graph.out)["exit_code"] == graph.code == 3


def test_a_document_is_not_followed_by_another(torchyard: Command, tmp_path: Path) -> None:
    """A command that printed its report, and fails because of it, has said all."""
    (tmp_path / "demo-1.0-py3-none-any.whl").write_bytes(b"no wheel")
    failed = torchyard("check", "--json", tmp_path / "demo-1.0-py3-none-any.whl")
    assert failed.code != 0
    assert "findings" in json.loads(failed.out)


def test_one_name_for_one_option() -> None:
    """What is written goes to -o/--output, and --to names a channel."""
    for name, command in COMMANDS.items():
        for parameter in command.params:
            if "--to" in parameter.opts:
                assert parameter.metavar == "CHANNEL", name
            assert ("-o" in parameter.opts) == ("--output" in parameter.opts), name


def test_the_figures_of_a_build_are_all_jobs(torchyard: Command, tmp_path: Path) -> None:
    file = make_project(tmp_path)
    assert torchyard("build", "package", "-f", file).code == 0
    said = torchyard("build", "-f", file).err
    assert "demo-1.0: 4 of 10 jobs to do" in said
    assert "4 built, 2 cached, 4 not needed" in said
