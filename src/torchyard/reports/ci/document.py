"""What the commands of `torchyard ci` print with `--json`."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from torchyard.ci.drift import ComparedFile
from torchyard.ci.explain import PlacedJob
from torchyard.ci.pipeline import PART
from torchyard.model.values import Reported
from torchyard.plan.graph import Plan


class CiFileRow(Reported, kw_only=True):
    """A file of a provider; `state` is how it was before it was written."""

    provider: str
    path: str
    state: str
    size: int
    diff: list[str]


class CiFilesDocument(Reported, kw_only=True):
    """`torchyard ci generate --json` and `torchyard ci check --json`."""

    version: Literal[1] = 1
    files: list[CiFileRow]


class CiJobRow(Reported, kw_only=True):
    """A job of a provider that runs jobs of the plan."""

    provider: str
    pipeline: str
    job: str
    part: str
    labels: list[str]
    image: str
    needs: list[str]
    commands: list[str]
    minutes: int
    estimated_minutes: int
    round: int
    rounds: int
    planned: list[str]


class CiExplainDocument(Reported, kw_only=True):
    """`torchyard ci explain --json`."""

    version: Literal[1] = 1
    jobs: list[CiJobRow]


class StageImpact(Reported, kw_only=True):
    """How many jobs of a stage a change affects, of how many."""

    affected: int
    jobs: int


class CiImpactDocument(Reported, kw_only=True):
    """`torchyard ci impact --json`: what has to be built anew after a change."""

    version: Literal[1] = 1
    base: str
    head: str
    subset: str | None
    stages: dict[str, StageImpact]
    affected: list[str]
    vanished: list[str]


def ci_impact_document(
    old: Plan, new: Plan, *, base: str, head: str, subset: str | None
) -> CiImpactDocument:
    affected = [job for job in new.jobs if old.fingerprint(*job.key) != job.fingerprint]
    kept = {job.key for job in new.jobs}
    totals, counts = new.stage_counts(), Counter(job.stage for job in affected)
    return CiImpactDocument(
        base=base,
        head=head,
        subset=subset,
        stages={
            stage.value: StageImpact(affected=counts[stage], jobs=total)
            for stage, total in totals.items()
        },
        affected=[job.identifier for job in affected],
        vanished=[job.identifier for job in old.jobs if job.key not in kept],
    )


def ci_files_document(files: Sequence[ComparedFile]) -> CiFilesDocument:
    return CiFilesDocument(
        files=[
            CiFileRow(
                provider=file.provider,
                path=file.path,
                state=file.state.value,
                size=len(file.text.encode()),
                diff=list(file.diff),
            )
            for file in files
        ]
    )


def ci_explain_document(running: Sequence[PlacedJob]) -> CiExplainDocument:
    return CiExplainDocument(jobs=[_job_row(one) for one in running])


def _job_row(running: PlacedJob) -> CiJobRow:
    job, pipeline = running.job, running.pipeline
    commands = [
        pipeline.install,
        *pipeline.pull_commands(job.waves),
        pipeline.build_command(job),
        *pipeline.push_commands(job),
    ]
    return CiJobRow(
        provider=running.provider,
        pipeline=pipeline.name,
        job=job.name,
        part=running.part,
        labels=list(job.machine.labels),
        image=job.machine.image,
        needs=list(job.needs),
        commands=[command.replace(f"${PART}", running.part) for command in commands],
        minutes=pipeline.minutes,
        estimated_minutes=-(-job.seconds // 60),
        round=job.round,
        rounds=job.rounds,
        planned=list(running.planned),
    )
