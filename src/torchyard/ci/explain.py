"""Find the jobs of a provider that run jobs of a plan."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from torchyard.ci.pipeline import PART, CiJob, Pipeline, Wave
from torchyard.errors import SelectionError
from torchyard.model.recipe import Stage
from torchyard.model.values import Reported
from torchyard.plan.graph import Job, Plan
from torchyard.plan.select import selector_of
from torchyard.plan.select_jobs import matching_jobs


class PlacedJob(Reported, kw_only=True):
    """A provider's job, or a part of it, that runs jobs of a plan."""

    provider: str
    pipeline: str
    job: str
    part: str
    labels: Sequence[str]
    image: str
    needs: Sequence[str]
    commands: Sequence[str]
    minutes: int
    estimated_minutes: int
    round: int
    rounds: int
    planned: Sequence[str]


class JobIndex:
    """Finds the provider's job that runs a job of the plan, in one pipeline."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._jobs: dict[tuple[Wave, str], list[tuple[CiJob, str]]] = {}
        for job in pipeline.jobs:
            for part in job.parts or ("",):
                self._jobs.setdefault((job.wave, job.scope(part)), []).append((job, part))

    def find(self, planned: Job) -> list[tuple[CiJob, str]]:
        """Return the job that runs a job of the plan, and its part, for each round."""
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
    """Yield a provider's jobs that run selected jobs of the plan.

    `name` is a selector of jobs of the plan (`core:*`), or the name of a provider's job.
    """
    for pipeline, plan in folded:
        index = JobIndex(pipeline)
        placed: dict[tuple[str, str], tuple[CiJob, list[str]]] = {}
        wanted: set[int] = set()
        with suppress(SelectionError):  # the name is of a provider's job, or of another subset
            jobs = matching_jobs(plan, selector_of(plan.expansion, [name]))
            wanted = {job.number for job in jobs}
        for planned in plan.jobs:
            for job, part in index.find(planned):
                if planned.number in wanted or job.name == name:
                    _, names = placed.setdefault((job.name, part), (job, []))
                    names.append(planned.identifier)
        for (_, part), (job, names) in placed.items():
            yield _placed(provider, pipeline, job, part, names)


def _placed(
    provider: str, pipeline: Pipeline, job: CiJob, part: str, planned: Sequence[str]
) -> PlacedJob:
    commands = [
        pipeline.install,
        *pipeline.pull_commands(job.waves),
        pipeline.build_command(job),
        *pipeline.push_commands(job),
    ]
    return PlacedJob(
        provider=provider,
        pipeline=pipeline.name,
        job=job.name,
        part=part,
        labels=job.machine.labels,
        image=job.machine.image,
        needs=job.needs,
        commands=[command.replace(f"${PART}", part) for command in commands],
        minutes=pipeline.minutes,
        estimated_minutes=-(-job.seconds // 60),
        round=job.round,
        rounds=job.rounds,
        planned=planned,
    )
