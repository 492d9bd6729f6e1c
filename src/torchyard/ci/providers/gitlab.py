"""GitLab CI/CD: a file for each pipeline, and one that chooses between them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import translate

from torchyard.ci.pipeline import PART, CiJob, CiMachine, Pipeline, Wave, carried_folder
from torchyard.ci.provider import Measure, ProviderTable, refuse_settings
from torchyard.ci.yaml import CiFile, Yaml, nodes, texts_in
from torchyard.model.ci import CiEvent, CiPipeline, HookPoint

_CHOICE = "TORCHYARD_PIPELINE"
"""The variable that names the pipeline, for schedules and runs by hand."""

_PUBLISH = "publish"
_POINTS: Mapping[HookPoint, str] = {
    "before": ".pre",
    "after-build": "after-build",
    "after-publish": ".post",
}
"""The stage for jobs of the user's own at each point."""


def files(pipelines: Sequence[Pipeline], table: ProviderTable) -> list[CiFile]:
    """Return the file that chooses a pipeline, and that of each pipeline."""
    for pipeline in pipelines:
        refuse_settings(pipeline, table, "role")
    included: list[Yaml] = []
    for pipeline in pipelines:
        rules: list[Yaml] = [{"if": rule} for rule in _rules(pipeline.settings)]
        own = [hook.uses.removeprefix("./") for hook in pipeline.settings.hooks]
        included += ({"local": path, "rules": rules} for path in (_path(pipeline.settings), *own))
    stages: list[Yaml] = [*(wave.value for wave in Wave), _POINTS["after-build"], _PUBLISH]
    top: dict[str, Yaml] = {"stages": stages, "include": included}
    return [
        CiFile(".gitlab-ci.yml", top),
        *(CiFile(_path(pipeline.settings), _jobs(pipeline)) for pipeline in pipelines),
    ]


def measures(document: Mapping[str, Yaml]) -> Iterator[Measure]:
    """Yield the rows and values of each matrix, the needs of each job, and the number of jobs."""
    jobs = len(list(nodes(document, "script")))
    for path, parts in nodes(document, "matrix", 0, PART):
        rows = texts_in(parts)
        jobs += len(rows) - 1
        yield Measure("matrix_jobs", len(rows), path)
        yield Measure("matrix_value_characters", max(map(len, rows)), path)
    for path, needs in nodes(document, "needs"):
        yield Measure("needs", len(texts_in(needs)), path)
    yield Measure("pipeline_jobs", jobs, "the pipeline")


def _path(settings: CiPipeline) -> str:
    return f".gitlab/torchyard-{settings.name}.yml"


def _rules(settings: CiPipeline) -> Iterator[str]:
    """Yield the conditions under which a pipeline runs."""
    source = "$CI_PIPELINE_SOURCE =="
    for event in settings.on:
        match event:
            case CiEvent.PULL_REQUEST:
                rule = f'{source} "merge_request_event"'
                if settings.label:
                    label = re.escape(settings.label).replace("/", r"\/")
                    rule += f" && $CI_MERGE_REQUEST_LABELS =~ /(^|,){label}(,|$)/"
                yield rule
            case CiEvent.PUSH:
                branches = settings.branches or ("*",)
                yield f'{source} "push" && $CI_COMMIT_BRANCH =~ {_expression(branches)}'
            case CiEvent.TAG:
                yield f"$CI_COMMIT_TAG =~ {_expression(settings.tags)}"
            case CiEvent.SCHEDULE:
                yield f'{source} "schedule" && ${_CHOICE} == "{settings.name}"'
            case CiEvent.MANUAL:
                yield f'{source} "web" && ${_CHOICE} == "{settings.name}"'


def _expression(globs: Sequence[str]) -> str:
    """Return globs as a regular expression of RE2."""
    plain = (translate(glob).removeprefix("(?s:").removesuffix(r")\Z") for glob in globs)
    return f"/^({'|'.join(text.replace('/', chr(92) + '/') for text in plain)})$/"


def _jobs(pipeline: Pipeline) -> dict[str, Yaml]:
    jobs: dict[str, Yaml] = {
        _name(pipeline, job.name): _job(pipeline, job) for job in pipeline.jobs
    }
    if pipeline.settings.channel is not None:
        jobs[_name(pipeline, _PUBLISH)] = _publish(pipeline)
    return jobs


def _name(pipeline: Pipeline, job: str) -> str:
    return f"{pipeline.name}:{job}"


def _job(pipeline: Pipeline, job: CiJob) -> dict[str, Yaml]:
    made: dict[str, Yaml] = {"stage": job.wave.value}
    if job.needs:
        made["needs"] = [_name(pipeline, name) for name in job.needs]
    made |= _machine(pipeline, job.machine)
    made["interruptible"] = pipeline.settings.is_superseded
    if job.parts:
        made["parallel"] = {"matrix": [{PART: list(job.parts)}]}
    made["script"] = [
        *job.machine.prepare,
        pipeline.install,
        *pipeline.pull_commands(job.waves),
        pipeline.build_command(job),
        *pipeline.push_commands(job),
    ]
    if pipeline.carried:
        made["artifacts"] = {"paths": [f"{carried_folder(job.wave)}/"], "expire_in": "1 week"}
    return made


def _machine(pipeline: Pipeline, machine: CiMachine) -> dict[str, Yaml]:
    made: dict[str, Yaml] = {"tags": list(machine.labels)}
    if machine.image:
        made["image"] = machine.image
    return {**made, "timeout": f"{pipeline.minutes} minutes"}


def _publish(pipeline: Pipeline) -> dict[str, Yaml]:
    """Return the job that publishes: without `needs`, it waits for all, and gets all results."""
    settings = pipeline.settings
    waves = tuple(dict.fromkeys(job.wave for job in pipeline.jobs))
    made: dict[str, Yaml] = {"stage": _PUBLISH, **_machine(pipeline, pipeline.publisher)}
    made["interruptible"] = False
    made["resource_group"] = f"publish-{settings.channel}"
    made["environment"] = {"name": settings.environment or settings.channel}
    made["script"] = [
        *pipeline.publisher.prepare,
        pipeline.install,
        *pipeline.pull_commands(waves),
        pipeline.publish_command(),
    ]
    if pipeline.channel_folder:
        made["artifacts"] = {"paths": [f"{pipeline.channel_folder}/"]}
    return made
