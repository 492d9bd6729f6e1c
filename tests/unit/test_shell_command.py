"""`torchyard shell`: which words are its own, and which are the command's that it runs."""

import pytest

from torchyard.features.shell.command import command

JOB = "core:cpu"
NINJA = ("cmake", "--build", "build", "--verbose", "-f", "x")


@pytest.mark.parametrize(
    ("args", "file", "words"),
    [
        ([JOB, *NINJA], None, NINJA),
        (["-f", "a.toml", JOB, *NINJA], "a.toml", NINJA),
        ([JOB, "-f", "a.toml", *NINJA], "a.toml", NINJA),
        ([JOB, "-f", "a.toml", "--", *NINJA], "a.toml", NINJA),
        ([JOB, "--file=a.toml", "ls", "--", "-f"], "a.toml", ("ls", "--", "-f")),
        ([JOB], None, ()),
        ([], None, ()),
    ],
)
def test_options_after_the_command_are_its_own(
    args: list[str], file: str | None, words: tuple[str, ...]
) -> None:
    params = command.make_context("shell", list(args)).params
    assert (params["words"], params["job"]) == (words, JOB if args else None)
    assert params["file"] == (file or "torchyard.toml")
