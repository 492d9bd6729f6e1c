"""A step: one command of a job, as a value."""

import re
from collections.abc import Collection, Iterator, Mapping

from torchyard.model.recipe import DEPTH, Stage
from torchyard.model.values import Value

_PLACE = re.compile(r"\{\{|\}\}|(?<!\$)\{([a-z_]+)\}")

PLACES = {
    "work": "the job's own directory, the only one it may write to",
    "build": "where steps run, and leave files that no other job needs",
    "out": "what is put here is the job's result",
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
"""The words in braces for the fields of a cell, in their order, where a stage's jobs have them."""

INPUTS = {
    Stage.CORE: (Stage.SOURCE,),
    Stage.BINDINGS: (Stage.SOURCE, Stage.CORE),
    Stage.PACKAGE: (Stage.CORE, Stage.BINDINGS),
    Stage.CHECK: (Stage.PACKAGE,),
    Stage.SMOKE: (Stage.PACKAGE,),
}
"""The stages whose results a stage's steps can use: `{core}` is `{inputs}/core`."""


SHELL = ("bash", "-euo", "pipefail", "-c")
"""Runs a step that is a shell line; stops at the first error."""


OWN = ("{self}", "-P", "-m", "torchyard")
"""Runs a command of torchyard; `-P` keeps the project's modules from shadowing torchyard's."""


def beside(word: str) -> str:
    """Return a place as steps see it: relative directories are below `{base}`."""
    return word if "://" in word or word.startswith("/") else f"{{base}}/{word}"


class Step(Value, kw_only=True):
    """One command of a job: what to run, where, with which variables, and its required outputs.

    Words in braces are replaced by paths and facts of the job, see `places_of`.
    """

    run: tuple[str, ...]
    name: str = ""
    cwd: str = "{build}"
    env: dict[str, str] = {}
    outputs: tuple[str, ...] = ()
    network: bool = False

    @property
    def title(self) -> str:
        """The step's name in logs; by default the command, or the first line for the shell."""
        words = self.run[len(SHELL) :] if self.is_line else self.run
        return self.name or " ".join(words).strip().partition("\n")[0]

    @property
    def is_line(self) -> bool:
        """Whether it is a line for the shell."""
        return self.run[: len(SHELL)] == SHELL

    def faults(self, places: Collection[str]) -> Iterator[str]:
        """Yield why the step can't be run by a job that has these words in braces."""
        texts = (*self.run, self.cwd, *self.env, *self.env.values(), *self.outputs)
        if not self.run:
            yield "has no words"
        if any("\0" in text for text in texts):
            yield "has a NUL character"
        if any("=" in name for name in self.env):
            yield "has a variable with `=` in its name"
        for word in (word for text in texts for word in words_in_braces(text)):
            if word not in places:
                yield f"uses {{{word}}}, which it does not have"

    def filled(self, places: Mapping[str, str]) -> "Step":
        """Return the step with every word in braces replaced; for a shell, each is quoted."""
        from shlex import quote  # noqa: PLC0415 - planning fills no step

        quoted = {name: quote(value) for name, value in places.items()} if self.is_line else places
        return Step(
            run=tuple(fill(word, quoted) for word in self.run),
            name=self.title,
            cwd=fill(self.cwd, places),
            env={key: fill(value, places) for key, value in self.env.items()},
            outputs=tuple(fill(glob, places) for glob in self.outputs),
            network=self.network,
        )


Setting = str | bool | tuple[str | Step, ...] | dict[str, str]
"""The types of a job's settings."""


def places_of(stage: Stage, stages: Collection[Stage] = tuple(Stage)) -> tuple[str, ...]:
    """Return the words that a stage's steps may use in braces, given the stages of the recipe."""
    inputs = (needed.value for needed in INPUTS.get(stage, ()) if needed in stages)
    own = ("channel",) if stage is Stage.PUBLISH else tuple(FACTS)[: DEPTH[stage]]
    return (*PLACES, *inputs, *own)


def words_in_braces(text: str) -> list[str]:
    """Return the names to replace in a text; `{{` and `}}` are braces, `${x}` is a shell's."""
    return [found[1] for found in _PLACE.finditer(text) if found[1]]


def fill(text: str, places: Mapping[str, str]) -> str:
    """Return the text with names in braces replaced; KeyError if the job does not have one."""
    return _PLACE.sub(lambda found: places[found[1]] if found[1] else found[0][0], text)
