"""A step: one command of a job, as a value."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Literal

from torchyard.model.recipe import DEPTH, Stage
from torchyard.model.values import Value

_PLACEHOLDER = re.compile(r"\{\{|\}\}|(?<!\$)\{([a-z_]+)\}")

PLACEHOLDERS = {
    "work": "the job's own directory, the only one it may write to",
    "build": "the directory where steps run, and leave files that no other job needs",
    "out": "the directory for the job's result",
    "inputs": "the results of the jobs that this one needs, a directory for each stage",
    "spec": "the job as a file `torchyard-spec.json`; a package with it inside can be rebuilt",
    "name": "the project's name",
    "version": "the project's version",
}
"""The words that every step may use in braces."""

FACTS = {
    "platform": "the cell's platform, such as linux-x86_64",
    "compute": "the cell's compute platform, such as cu130",
    "variant": "the cell's BLAS, or the torch it is compiled against",
    "python": "the cell's Python, such as cp312",
    "kind": "the cell's package kind, such as wheel",
}
"""The words in braces for the fields of a cell, in order; a stage's jobs have the first few."""

INPUTS = {
    Stage.CORE: (Stage.SOURCE,),
    Stage.BINDINGS: (Stage.SOURCE, Stage.CORE),
    Stage.PACKAGE: (Stage.CORE, Stage.BINDINGS),
    Stage.CHECK: (Stage.PACKAGE,),
    Stage.SMOKE: (Stage.PACKAGE,),
}
"""The stages whose results a stage's steps can use: `{core}` is `{inputs}/core`."""


SHELL = ("bash", "-euo", "pipefail", "-c")
"""The command that runs a shell line, and stops at its first error."""


OWN = ("{self}", "-P", "-m", "torchyard")
"""The command for torchyard; `-P` keeps the project's modules from shadowing torchyard's."""


def beside(word: str) -> str:
    """Return an address or path as steps see it: relative paths are below `{base}`."""
    return word if "://" in word or word.startswith("/") else f"{{base}}/{word}"


class Step(Value, kw_only=True):
    """A command of a job, with its directory, variables and required outputs.

    Words in braces are replaced by paths and facts of the job, see `placeholders_of`.
    """

    run: tuple[str, ...]
    name: str = ""
    cwd: str = "{build}"
    env: dict[str, str] = {}
    outputs: tuple[str, ...] = ()
    network: bool = False
    copies: Literal["", "inputs", "links"] = ""
    """What it only copies: a job's inputs into its directory, or files there as hard links.

    No such step makes a result depend on what it copies.
    """

    @property
    def title(self) -> str:
        """The step's name in logs; by default the command, or the first line for the shell."""
        words = self.run[len(SHELL) :] if self.is_line else self.run
        return self.name or " ".join(words).strip().partition("\n")[0]

    @property
    def is_line(self) -> bool:
        """Whether it is a shell line."""
        return self.run[: len(SHELL)] == SHELL

    def faults(self, values: Collection[str]) -> Iterator[str]:
        """Yield why a job with these words in braces can't run the step."""
        texts = (*self.run, self.cwd, *self.env, *self.env.values(), *self.outputs)
        if not self.run:
            yield "has no words"
        if any("\0" in text for text in texts):
            yield "has a NUL character"
        if any("=" in name for name in self.env):
            yield "has a variable with `=` in its name"
        for word in (word for text in texts for word in words_in_braces(text)):
            if word not in values:
                yield f"uses {{{word}}}, which it does not have"

    def filled(self, values: Mapping[str, str]) -> "Step":
        """Return the step with all words in braces replaced, quoted in a shell line."""
        from shlex import quote  # noqa: PLC0415 - planning fills no step

        quoted = {name: quote(value) for name, value in values.items()} if self.is_line else values
        return Step(
            run=tuple(fill(word, quoted) for word in self.run),
            name=self.title,
            cwd=fill(self.cwd, values),
            env={key: fill(value, values) for key, value in self.env.items()},
            outputs=tuple(fill(glob, values) for glob in self.outputs),
            network=self.network,
        )


Setting = str | bool | tuple[str | Step, ...] | dict[str, str]
"""The types of a job's settings."""


def placeholders_of(stage: Stage, stages: Collection[Stage] = tuple(Stage)) -> tuple[str, ...]:
    """Return the words in braces for a stage's steps, given the recipe's stages."""
    inputs = (needed.value for needed in INPUTS.get(stage, ()) if needed in stages)
    facts = ("channel",) if stage is Stage.PUBLISH else tuple(FACTS)[: DEPTH[stage]]
    return (*PLACEHOLDERS, *inputs, *facts)


def words_in_braces(text: str) -> list[str]:
    """Return the names to replace in a text; `{{` and `}}` are braces, `${x}` is a shell's."""
    return [found[1] for found in _PLACEHOLDER.finditer(text) if found[1]]


def fill(text: str, values: Mapping[str, str]) -> str:
    """Return the text with names in braces replaced; raise KeyError for an unknown one."""
    return _PLACEHOLDER.sub(lambda found: values[found[1]] if found[1] else found[0][0], text)
