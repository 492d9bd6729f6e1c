"""Azure Pipelines: a file for each pipeline."""

import re
from collections.abc import Iterator, Mapping, Sequence

from torchyard.ci.narrow import WantedParts
from torchyard.ci.pipeline import PART, CiJob, CiMachine, Pipeline
from torchyard.ci.provider import Measure, ProviderTable, refuse_settings
from torchyard.ci.yaml import CiFile, Yaml, nodes, texts_in
from torchyard.model.ci import CiEvent, CiPipeline

_POOL = "pool:"
"""Prefix of labels for pools of the organisation's own machines."""

_NO_WORD = re.compile(r"\W")
_MAIN = ("main",)


def files(pipelines: Sequence[Pipeline], table: ProviderTable) -> list[CiFile]:
    """Return the file of each pipeline."""
    for pipeline in pipelines:
        refuse_settings(pipeline, table, "role", "label", "hooks")
    return [
        CiFile(f".azure-pipelines/torchyard-{pipeline.name}.yml", _document(pipeline))
        for pipeline in pipelines
    ]


def selection(pipeline: Pipeline, wanted: WantedParts) -> None:
    """Return None: all jobs of a pipeline run."""


def measures(document: Mapping[str, Yaml]) -> Iterator[Measure]:
    """Yield the number of rows of each matrix, and the length of their names."""
    for path, matrix in nodes(document, "strategy", "matrix"):
        rows = texts_in(matrix)
        yield Measure("matrix_jobs", len(rows), path)
        yield Measure("matrix_name_characters", max(map(len, rows)), path)


def _document(pipeline: Pipeline) -> dict[str, Yaml]:
    settings = pipeline.settings
    jobs: list[Yaml] = [_job(pipeline, job) for job in pipeline.jobs]
    if settings.channel is not None:
        jobs.append(_publish(pipeline))
    return {**_triggers(settings), "jobs": jobs}


def _triggers(settings: CiPipeline) -> dict[str, Yaml]:
    push: dict[str, Yaml] = {}
    if CiEvent.PUSH in settings.on:
        push["branches"] = {"include": list(settings.branches or ("*",))}
    if CiEvent.TAG in settings.on:
        push["tags"] = {"include": list(settings.tags)}
    made: dict[str, Yaml] = {"trigger": push or "none"}
    asked: dict[str, Yaml] = {"autoCancel": "true", "branches": {"include": ["*"]}}
    made["pr"] = asked if CiEvent.PULL_REQUEST in settings.on else "none"
    if CiEvent.SCHEDULE in settings.on:
        branches: dict[str, Yaml] = {"include": list(settings.branches or _MAIN)}
        when: dict[str, Yaml] = {"cron": settings.cron, "displayName": settings.name}
        made["schedules"] = [{**when, "branches": branches, "always": "true"}]
    return made


def _word(name: str) -> str:
    return _NO_WORD.sub("_", name)


def _job(pipeline: Pipeline, job: CiJob) -> dict[str, Yaml]:
    made: dict[str, Yaml] = {"job": _word(job.name), "displayName": job.name.replace("-", " ", 1)}
    if job.needs:
        made["dependsOn"] = [_word(name) for name in job.needs]
    made |= _machine(pipeline, job.machine)
    if job.parts:
        made["strategy"] = {"matrix": {f"p_{_word(part)}": {PART: part} for part in job.parts}}
    commands = [*pipeline.prepare_commands(job), pipeline.build_command(job)]
    name = f"{job.name}-$(System.JobPositionInPhase)"
    packages: Yaml = {"publish": pipeline.package_folder, "artifact": name}
    kept = [packages] if job.is_packing else []
    return {**made, "steps": [*_begin(pipeline, job.machine), *map(_run, commands), *kept]}


def _machine(pipeline: Pipeline, machine: CiMachine) -> dict[str, Yaml]:
    label = machine.labels[0]
    pool: dict[str, Yaml] = {"vmImage": label}
    if label.startswith(_POOL):
        pool = {"name": label.removeprefix(_POOL)}
    if demands := machine.labels[1:]:
        pool["demands"] = list(demands)
    made: dict[str, Yaml] = {"pool": pool, "timeoutInMinutes": str(pipeline.minutes)}
    return made | ({"container": machine.image} if machine.image else {})


def _begin(pipeline: Pipeline, machine: CiMachine) -> Iterator[Yaml]:
    """Yield the steps that fetch the repository and the Python that runs torchyard."""
    yield {"checkout": "self", "persistCredentials": "false"}
    if not machine.image:
        yield {"task": "UsePythonVersion@0", "inputs": {"versionSpec": pipeline.pythons[-1]}}


def _run(command: str) -> Yaml:
    return {"bash": command}


def _publish(pipeline: Pipeline) -> dict[str, Yaml]:
    """Return the publishing deployment; its environment holds the approvals."""
    settings = pipeline.settings
    commands = [*pipeline.publisher.prepare, pipeline.install, *pipeline.publish_commands()]
    steps: list[Yaml] = [*_begin(pipeline, pipeline.publisher), *map(_run, commands)]
    return {
        "deployment": "publish",
        "displayName": f"publish to {settings.channel}",
        "dependsOn": [_word(name) for name in pipeline.leaves()],
        **_machine(pipeline, pipeline.publisher),
        "environment": settings.environment or settings.channel,
        "strategy": {"runOnce": {"deploy": {"steps": steps}}},
    }
