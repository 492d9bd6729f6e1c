"""CircleCI: one configuration, with a workflow for each pipeline."""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import translate

from torchyard.ci.narrow import WantedParts
from torchyard.ci.pipeline import PART, CiJob, CiMachine, Pipeline
from torchyard.ci.provider import Measure, ProviderTable, refuse_settings
from torchyard.ci.yaml import CiFile, Yaml, nodes, texts_in
from torchyard.model.ci import CiEvent, CiPipeline

_CHOICE = "<< pipeline.parameters.pipeline >>"
_BRANCH = "<< pipeline.git.branch >>"
_PUBLISH = "publish"
_XCODE = "xcode:"
_OWN = "self-hosted/"


def files(pipelines: Sequence[Pipeline], table: ProviderTable) -> list[CiFile]:
    """Return the configuration."""
    jobs: dict[str, Yaml] = {}
    workflows: dict[str, Yaml] = {}
    for pipeline in pipelines:
        refuse_settings(pipeline, table, "role", "label", "hooks")
        jobs |= {_name(pipeline, job.name): _job(pipeline, job) for job in pipeline.jobs}
        if pipeline.settings.channel is not None:
            jobs[_name(pipeline, _PUBLISH)] = _publish(pipeline)
        workflows[pipeline.name] = _workflow(pipeline)
    choice: dict[str, Yaml] = {"type": "string", "default": ""}
    document: dict[str, Yaml] = {
        "version": 2.1,
        "parameters": {"pipeline": choice},
        "jobs": jobs,
        "workflows": workflows,
    }
    return [CiFile(".circleci/config.yml", document)]


def selection(pipeline: Pipeline, wanted: WantedParts) -> None:
    """Return None: all jobs of a pipeline run."""


def measures(document: Mapping[str, Yaml]) -> Iterator[Measure]:
    """Yield the number of jobs of each matrix."""
    for path, parts in nodes(document, "matrix", "parameters", "part"):
        yield Measure("matrix_jobs", len(texts_in(parts)), path)


def _name(pipeline: Pipeline, job: str) -> str:
    return f"{pipeline.name}-{job}"


def _job(pipeline: Pipeline, job: CiJob) -> dict[str, Yaml]:
    made: dict[str, Yaml] = _machine(job.machine)
    if job.parts:
        made["parameters"] = {"part": {"type": "string"}}
        made["environment"] = {PART: "<< parameters.part >>"}
    commands = [*pipeline.prepare_commands(job), pipeline.build_command(job)]
    packages: Yaml = {"store_artifacts": {"path": pipeline.package_folder}}
    kept = [packages] if job.is_packing else []
    return {**made, "steps": ["checkout", *map(_run, commands), *kept]}


def _run(command: str) -> Yaml:
    # A step without output would be stopped after ten minutes.
    return {"run": {"command": command, "no_output_timeout": "1h"}}


def _machine(machine: CiMachine) -> dict[str, Yaml]:
    label, image = machine.labels[0], machine.image
    if label.startswith(_OWN) or not image:
        return {"machine": True, "resource_class": label}
    if image.startswith(_XCODE):
        return {"macos": {"xcode": image.removeprefix(_XCODE)}, "resource_class": label}
    return {"machine": {"image": image}, "resource_class": label}


def _publish(pipeline: Pipeline) -> dict[str, Yaml]:
    commands = [
        *pipeline.publisher.prepare,
        pipeline.install,
        *pipeline.publish_commands(),
    ]
    return {**_machine(pipeline.publisher), "steps": ["checkout", *map(_run, commands)]}


def _workflow(pipeline: Pipeline) -> dict[str, Yaml]:
    settings = pipeline.settings
    tagged: dict[str, Yaml] = (
        {"filters": {"tags": {"only": "/.*/"}}} if CiEvent.TAG in settings.on else {}
    )
    jobs: list[Yaml] = []
    for job in pipeline.jobs:
        given: dict[str, Yaml] = {"requires": [_name(pipeline, name) for name in job.needs]}
        if not job.needs:
            given = {}
        if job.parts:
            given["matrix"] = {"parameters": {"part": list(job.parts)}}
        made = {**given, **tagged}
        name = _name(pipeline, job.name)
        jobs.append({name: made} if made else name)
    if settings.channel is not None:
        # A context gives the job its identity token, and restricts its use.
        context: list[Yaml] = [settings.environment or settings.channel]
        leaves: list[Yaml] = [_name(pipeline, name) for name in pipeline.leaves()]
        published: dict[str, Yaml] = {"context": context, "requires": leaves, **tagged}
        jobs.append({_name(pipeline, _PUBLISH): published})
    return {"when": {"or": list(_conditions(settings))}, "jobs": jobs}


def _conditions(settings: CiPipeline) -> Iterator[Yaml]:
    webhook: dict[str, Yaml] = {"equal": ["webhook", "<< pipeline.trigger_source >>"]}
    for event in settings.on:
        match event:
            case CiEvent.PULL_REQUEST:
                default: dict[str, Yaml] = {"equal": [True, "<< pipeline.git.branch.is_default >>"]}
                yield {"and": [webhook, {"not": default}]}
            case CiEvent.PUSH:
                pattern = _expression(settings.branches or ("*",))
                yield {"and": [webhook, {"matches": {"pattern": pattern, "value": _BRANCH}}]}
            case CiEvent.TAG:
                value = "<< pipeline.git.tag >>"
                yield {"matches": {"pattern": _expression(settings.tags), "value": value}}
            case CiEvent.SCHEDULE:
                yield {"equal": [settings.name, "<< pipeline.schedule.name >>"]}
            case CiEvent.MANUAL:
                yield {"equal": [settings.name, _CHOICE]}


def _expression(globs: Sequence[str]) -> str:
    """Return globs as a regular expression."""
    plain = (translate(glob).removeprefix("(?s:").removesuffix(r")\Z") for glob in globs)
    return f"^({'|'.join(plain)})$"
