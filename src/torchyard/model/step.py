"""A step: one command of a job, as a value."""

import re
from collections.abc import Collection, Mapping

from torchyard.model.recipe import DEPTH, Stage
from torchyard.model.values import Value

_PLACE = re.compile(r"\{\{|\}\}|(?<!\$)\{([a-z_]+)\}")

PLACES = {
    "work": "the job's own directory, the only one it may write to",
    "build": "where steps run, and leave what nobody else needs",
    "out": "what is put here is the job's result",
    "inputs": "the results of the jobs that this one needs, a directory for each stage",
    "order": "the job as a file `torchyard-order.json`; a package with it inside can be rebuilt",
    "name": "the project's name",
    "version": "the project's version",
}
"""What may stand in braces in every step."""

FACTS = {
    "platform": "the cell's platform, such as linux-x86_64",
    "compute": "the cell's compute platform, such as cu130",
    "variant": "the cell's BLAS, or the torch it is compiled against",
    "python": "the cell's Python, such as cp312",
    "kind": "the cell's package kind, such as wheel",
}
"""What may stand in braces if the step's stage is about it, in the order of a cell's fields."""

INPUTS = {
    Stage.CORE: (Stage.SOURCE,),
    Stage.BINDINGS: (Stage.SOURCE, Stage.CORE),
    Stage.PACKAGE: (Stage.CORE, Stage.BINDINGS),
    Stage.CHECK: (Stage.PACKAGE,),
    Stage.SMOKE: (Stage.PACKAGE,),
}
"""The stages whose results a stage's steps can name: `{core}` is `{inputs}/core`."""


SHELL = ("bash", "-euo", "pipefail", "-c")
"""What runs a step that is written as a line: it stops at the first thing that goes wrong."""


OWN = ("{self}", "-P", "-m", "torchyard")
"""What runs a tool of ours; with `-P`, no module of the project can stand in for one of ours."""


def beside(place: str) -> str:
    """A directory that is not absolute is beside the file; an address stays what it is."""
    return place if "://" in place or place.startswith("/") else f"{{base}}/{place}"


class Step(Value, kw_only=True):
    """One command of a job: what to run, where, with what, and what must be there afterwards.

    Words in braces stand for places and facts of the job, see `places_of`.
    """

    run: tuple[str, ...]
    name: str = ""
    cwd: str = "{build}"
    env: dict[str, str] = {}
    outputs: tuple[str, ...] = ()
    network: bool = False

    @property
    def title(self) -> str:
        """What people know the step by; a line for the shell is known by its first line."""
        words = self.run[len(SHELL) :] if self.is_line else self.run
        return self.name or " ".join(words).strip().partition("\n")[0]

    @property
    def is_line(self) -> bool:
        """Whether a shell runs it."""
        return self.run[: len(SHELL)] == SHELL

    def filled(self, places: Mapping[str, str]) -> "Step":
        """The same step with every word in braces replaced; for a shell, each is quoted."""
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
"""What a setting of a job can be."""


def places_of(stage: Stage, stages: Collection[Stage] = tuple(Stage)) -> tuple[str, ...]:
    """The words that a stage's steps may put in braces, in a recipe with some stages."""
    inputs = (needed.value for needed in INPUTS.get(stage, ()) if needed in stages)
    own = ("channel",) if stage is Stage.PUBLISH else tuple(FACTS)[: DEPTH[stage]]
    return (*PLACES, *inputs, *own)


def words_in_braces(text: str) -> list[str]:
    """The names that a text wants replaced; `{{` and `}}` stand for braces, `${x}` is a shell's."""
    return [found[1] for found in _PLACE.finditer(text) if found[1]]


def fill(text: str, places: Mapping[str, str]) -> str:
    """Replace names in braces; a place that this job does not have is a KeyError."""
    return _PLACE.sub(lambda found: places[found[1]] if found[1] else found[0][0], text)
