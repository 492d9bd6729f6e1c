"""GitLab CI/CD: a file for each pipeline, and a file that chooses the pipeline."""

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import translate

from torchyard.ci.narrow import WantedParts
from torchyard.ci.pipeline import PART, CiJob, CiMachine, Pipeline, Wave, carried_folder
from torchyard.ci.provider import Measure, ProviderTable, refuse_settings
from torchyard.ci.yaml import CiFile, Yaml, dump_yaml, nodes, texts_in
from torchyard.model.ci import CiEvent, CiPipeline, HookPoint

_CHOICE = "TORCHYARD_PIPELINE"
"""The variable that names the pipeline, for schedules and runs by hand."""

_PUBLISH = "publish"
_AFFECTED = "affected"
_CHILD = ".torchyard/affected.yml"
"""It is outside of source directories, where it would count as a change."""
_POINTS: Mapping[HookPoint, str] = {
    "before": ".pre",
    "after-build": "after-build",
    "after-publish": ".post",
}
"""The stage for the user's jobs at each point."""


def files(pipelines: Sequence[Pipeline], table: ProviderTable) -> list[CiFile]:
    """Return the file that chooses a pipeline, and the file of each pipeline."""
    for pipeline in pipelines:
        refuse_settings(pipeline, table, "role")
    included: list[Yaml] = []
    for pipeline in pipelines:
        included += _includes(pipeline.settings)
    top: dict[str, Yaml] = {"stages": _stages(), "include": included}
    narrowed = [pipeline for pipeline in pipelines if pipeline.settings.is_narrowed]
    return [
        CiFile(".gitlab-ci.yml", top),
        *(CiFile(_path(pipeline.settings), _jobs(pipeline)) for pipeline in pipelines),
        *(CiFile(_path(p.settings, _AFFECTED), _affected(p)) for p in narrowed),
    ]


def _stages() -> list[Yaml]:
    return [*(wave.value for wave in Wave), _POINTS["after-build"], _PUBLISH]


def _includes(settings: CiPipeline) -> Iterator[Yaml]:
    """Yield the files of a pipeline, each with its events."""
    asked = (CiEvent.PULL_REQUEST,) if settings.is_narrowed else ()
    always = tuple(event for event in settings.on if event not in asked)
    own = [hook.uses.removeprefix("./") for hook in settings.hooks]
    paths = {_path(settings): always, _path(settings, _AFFECTED): asked}
    for path, events in {**paths, **dict.fromkeys(own, settings.on)}.items():
        if events:
            yield {"local": path, "rules": [{"if": rule} for rule in _rules(settings, events)]}


def _affected(pipeline: Pipeline) -> dict[str, Yaml]:
    """Return a job that writes a pipeline of the affected jobs, and a job that starts it."""
    machine = pipeline.jobs[0].machine
    command = pipeline.impact_command("gitlab", "CI_MERGE_REQUEST_DIFF_BASE_SHA")
    found = _name(pipeline, "impact")
    started: dict[str, Yaml] = {"include": [{"artifact": _CHILD, "job": found}]}
    return {
        found: {
            "stage": Wave.SOURCE.value,
            **_machine(pipeline, machine),
            "interruptible": pipeline.settings.is_superseded,
            "variables": {"GIT_DEPTH": "0"},
            "script": [*machine.prepare, pipeline.install, f"{command} -o {_CHILD}"],
            "artifacts": {"paths": [_CHILD], "expire_in": "1 week"},
        },
        _name(pipeline, _AFFECTED): {
            "stage": Wave.CORE.value,
            "needs": [found],
            "trigger": {**started, "strategy": "depend"},
        },
    }


def selection(pipeline: Pipeline, wanted: WantedParts) -> str:
    """Return the pipeline of the wanted jobs; GitLab refuses one without jobs."""
    jobs: dict[str, Yaml] = _jobs(pipeline.narrowed(wanted))
    if not jobs:
        machine = _machine(pipeline, pipeline.jobs[0].machine)
        script: list[Yaml] = ["echo no job is affected"]
        jobs = {_name(pipeline, "none"): {"stage": Wave.SOURCE.value, **machine, "script": script}}
    return dump_yaml({"stages": _stages(), **jobs})


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


def _path(settings: CiPipeline, what: str = "") -> str:
    return f".gitlab/torchyard-{settings.name}{what and '-'}{what}.yml"


def _rules(settings: CiPipeline, events: Sequence[CiEvent]) -> Iterator[str]:
    """Yield the conditions under which a pipeline runs."""
    source = "$CI_PIPELINE_SOURCE =="
    for event in events:
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
        *pipeline.prepare_commands(job),
        *pipeline.pull_commands(job.waves),
        pipeline.build_command(job),
        *pipeline.push_commands(job),
    ]
    kept: list[Yaml] = [f"{pipeline.package_folder}/"] if job.is_packing else []
    kept += [f"{carried_folder(job.wave)}/"] if pipeline.is_handed_on(job) else []
    if kept:
        made["artifacts"] = {"paths": kept, "expire_in": "1 week"}
    return made


def _machine(pipeline: Pipeline, machine: CiMachine) -> dict[str, Yaml]:
    made: dict[str, Yaml] = {"tags": list(machine.labels)}
    if machine.image:
        made["image"] = machine.image
    return {**made, "timeout": f"{pipeline.minutes} minutes"}


def _publish(pipeline: Pipeline) -> dict[str, Yaml]:
    """Return the publishing job: without `needs`, it waits for all jobs and gets all results."""
    settings = pipeline.settings
    made: dict[str, Yaml] = {"stage": _PUBLISH, **_machine(pipeline, pipeline.publisher)}
    made["interruptible"] = False
    made["resource_group"] = f"publish-{settings.channel}"
    made["environment"] = {"name": settings.environment or settings.channel}
    made["script"] = [
        *pipeline.publisher.prepare,
        pipeline.install,
        *pipeline.publish_commands(),
    ]
    if pipeline.channel_folder:
        made["artifacts"] = {"paths": [f"{pipeline.channel_folder}/"]}
    return made
