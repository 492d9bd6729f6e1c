"""Find the jobs of a provider that run jobs of a plan."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from torchyard.ci.pipeline import CiJob, Pipeline, Wave
from torchyard.model.matrix import matches
from torchyard.model.recipe import Stage
from torchyard.plan.graph import Job, Plan


class PlacedJob(NamedTuple):
    """A provider's job, and the part of it, that runs jobs of a plan."""

    provider: str
    pipeline: Pipeline
    job: CiJob
    part: str
    planned: tuple[str, ...]


class JobPlaces:
    """Where the jobs of a plan run, for one pipeline."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._jobs: dict[tuple[Wave, str], list[tuple[CiJob, str]]] = {}
        for job in pipeline.jobs:
            for part in job.parts or ("",):
                self._jobs.setdefault((job.wave, job.scope(part)), []).append((job, part))

    def find(self, planned: Job) -> list[tuple[CiJob, str]]:
        """Return the job that runs a job of the plan, and its part: one for each round."""
        words = planned.path.split("/")
        paths = ["/".join(words[:length]) for length in range(len(words), -1, -1)]
        for wave in _WAVES.get(planned.stage, ()):
            for path in paths:
                if found := self._jobs.get((wave, path)):
                    return found
        return []


_WAVES = {
    Stage.SOURCE: (Wave.SOURCE,),
    Stage.CORE: (Wave.CORE, Wave.PACKAGES),
    Stage.BINDINGS: (Wave.PACKAGES,),
    Stage.PACKAGE: (Wave.PACKAGES,),
    Stage.CHECK: (Wave.PACKAGES,),
    Stage.SMOKE: (Wave.SMOKE, Wave.PACKAGES),
}
"""The waves that can run jobs of a stage."""


def find_placed(
    provider: str, folded: Iterable[tuple[Pipeline, Plan]], name: str
) -> Iterator[PlacedJob]:
    """Yield the jobs of a provider that run a job of the plan; or what one of these jobs runs.

    `name` is a glob over jobs of the plan (`core:*`), or the name of a provider's job.
    """
    for pipeline, plan in folded:
        places = JobPlaces(pipeline)
        placed: dict[tuple[str, str], tuple[CiJob, list[str]]] = {}
        for planned in plan.jobs:
            is_wanted = ":" in name and matches(planned.identifier, name)
            for job, part in places.find(planned):
                if is_wanted or job.name == name:
                    _, names = placed.setdefault((job.name, part), (job, []))
                    names.append(planned.identifier)
        for (_, part), (job, names) in placed.items():
            yield PlacedJob(provider, pipeline, job, part, tuple(names))
