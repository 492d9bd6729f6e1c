"""Recipe `conda`: a conda recipe, run by rattler-build as it is.

A core job builds the outputs of a variant that have no Python, a bindings job those of one Python,
with the packages of the builds that they need. A package job takes one of these.
"""

from torchyard.model.job_spec import JobSpec, Task
from torchyard.model.recipe import Stage
from torchyard.model.recipe_output import RECIPE_CHANNELS
from torchyard.model.step import OWN, Step, beside
from torchyard.recipes.recipe import tool
from torchyard.toolchain.conda_lock import find_channel, is_remote
from torchyard.toolchain.conda_packages import packages_folder

_BUILD = "tool build-recipe --spec {spec} --inputs {inputs} --to {out}"
_TAKE = "take-output --spec {spec} --inputs {inputs} --to {out}"


def steps(spec: JobSpec) -> tuple[Step, ...] | None:
    """Return the steps of a job, or None if this recipe has none for its stage."""
    task = spec.task
    match task.stage:
        case Stage.CORE | Stage.BINDINGS:
            shared = packages_folder()
            words = (*OWN, *_BUILD.split(), *_channels(task))
            words += ("--packages", str(shared)) if shared else ()
            network = bool(task.settings.get("fetches")) or any(
                map(is_remote, task.words(RECIPE_CHANNELS))
            )
            return (Step(run=words, name="run the recipe", network=network),)
        case Stage.PACKAGE:
            return (tool(_TAKE, "take the package"),)
        case _:
            return None


def environment(_spec: JobSpec) -> dict[str, str]:
    """Return no variables: a recipe has its own."""
    return {}


def _channels(task: Task) -> tuple[str, ...]:
    names = map(find_channel, task.words(RECIPE_CHANNELS))
    return tuple(word for name in names for word in ("--channel", beside(name)))
