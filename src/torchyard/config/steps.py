"""Evaluate the steps and the environment of a spec."""

import re

from torchyard.config.matrix import Problems, as_tuple
from torchyard.config.positions import Path
from torchyard.config.spec import StepSpec, StepsSpec
from torchyard.model.recipe import Recipe, Stage
from torchyard.model.step import SHELL, Step, placeholders_of, words_in_braces
from torchyard.model.suggest import did_you_mean

_SECRET = re.compile(r"(?i)token|secret|passw|credential|private|api_?key|access_?key|auth")


_COMPOSED = ("PATH", "HOME", "TMPDIR", "MAKEFLAGS", "LANG", "LC_ALL", "TZ", "SOURCE_DATE_EPOCH")


def read_steps(
    spec: StepsSpec, recipe: Recipe, problems: Problems
) -> dict[Stage, tuple[Step, ...]]:
    """Return the steps of each stage that has steps in the file."""
    steps = {}
    for stage in Stage:
        given: list[StepSpec] | None = getattr(spec, stage)
        if given is None:
            continue
        if stage not in recipe.stages:
            what = f"recipe `{recipe.name}` has no stage `{stage}`"
            problems.add(("steps", stage.value), what, at_key=True)
        steps[stage] = tuple(
            _step(step, stage, recipe, problems, ("steps", stage.value, index))
            for index, step in enumerate(given)
        )
    return steps


def _step(spec: StepSpec, stage: Stage, recipe: Recipe, problems: Problems, path: Path) -> Step:
    if not spec.run:
        problems.add((*path, "run"), "a step must run a command")
    words = (*SHELL, spec.run) if isinstance(spec.run, str) else as_tuple(spec.run)
    for key, texts in (
        ("run", words),
        ("cwd", (spec.cwd,)),
        ("outputs", tuple(spec.outputs)),
        ("env", tuple(spec.env.values())),
    ):
        for name in dict.fromkeys(name for text in texts for name in words_in_braces(text)):
            if name not in placeholders_of(stage, recipe.stages):
                what = f"steps of stage `{stage}` have no `{{{name}}}`"
                problems.add((*path, key), what, _hint(name, stage, recipe))
    return Step(
        run=words,
        name=spec.name,
        cwd=spec.cwd,
        env=spec.env,
        outputs=tuple(spec.outputs),
        network=spec.network,
    )


def _hint(name: str, stage: Stage, recipe: Recipe) -> str:
    """Return a hint for a word in braces that a stage lacks."""
    stages = recipe.stages
    others = [other.value for other in stages if name in placeholders_of(other, stages)]
    if others:
        return f"{', '.join(others)} has it: let a step there write to its {{out}} what you need"
    known = did_you_mean(name, placeholders_of(stage, stages))
    return f"{known}; write {{{{{name}}}}} for literal braces"


def is_secret(name: str) -> bool:
    """Return whether a variable probably has a secret, which no build may see."""
    return _SECRET.search(name) is not None and name != "SSH_AUTH_SOCK"  # an agent's socket


def check_names(names: list[str], problems: Problems, path: Path) -> None:
    """Refuse invalid names of variables, and secrets, which no build may see."""
    for index, name in enumerate(names):
        if not name.isidentifier():
            problems.add((*path, index), f"`{name}` is not a valid environment variable")
        elif name in _COMPOSED:
            problems.add((*path, index), f"`{name}` is set by the job, not by the caller")
        elif is_secret(name):
            what = f"`{name}` looks like a secret, which no build may see"
            problems.add((*path, index), what, "only publish jobs get credentials")
