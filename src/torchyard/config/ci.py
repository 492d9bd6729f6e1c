"""Evaluates `[ci]`: resolves subsets, channels and patterns, and refuses contradictions."""

import re
from collections.abc import Mapping

from torchyard.config.ci_spec import CiPipelineSpec, CiRunnerSpec, CiSpec
from torchyard.config.matrix import MatrixReader, Problems, as_tuple
from torchyard.config.positions import Path
from torchyard.model.ci import CiEvent, CiHook, CiPipeline, CiRunner, CiSettings, RefreshRule
from torchyard.model.config import ChannelConfig
from torchyard.model.quantity import parse_duration
from torchyard.model.recipe import Stage
from torchyard.model.suggest import did_you_mean

_NAME = re.compile(r"[a-z][a-z0-9-]*")
_CRON = re.compile(r"(?:[0-9*/,-]+\s+){4}[0-9*/,-]+")
_LABEL = re.compile(r"[\w .:/-]*", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}(?: # \S+)?")
_HOOK = re.compile(r"(?!(?:impact|publish|source|core|packages|smoke)(?:-|$))[A-Za-z_][\w-]*")
_REVIEWED = re.compile(r"\./[^$\s]+|[\w./-]+@[0-9a-f]{40}")
_PLACED = (Stage.SOURCE, Stage.CORE, Stage.PACKAGE, Stage.SMOKE, Stage.PUBLISH)
"""The stages that have their own machines; bindings and checks run where packages are made."""


def read_ci(
    spec: CiSpec,
    reader: MatrixReader,
    channels: Mapping[str, ChannelConfig],
    subsets: Mapping[str, object],
) -> CiSettings:
    """Return the settings of generated CI; add their errors to `problems`."""
    problems = reader.problems
    for action, commit in spec.actions.items():
        if not _COMMIT.fullmatch(commit):
            hint = "give the 40 digits of a commit: a tag can be moved"
            problems.add(("ci", "actions", action), f"`{commit}` pins nothing", hint)
    return CiSettings(
        providers=tuple(spec.providers),
        install=spec.install,
        python=spec.python,
        time_limit=_time_limit(spec, problems),
        runners=tuple(
            _runner(runner, reader, ("ci", "runner", index))
            for index, runner in enumerate(spec.runner)
        ),
        pipelines={
            name: _pipeline(name, pipeline, channels, subsets, problems)
            for name, pipeline in spec.pipeline.items()
        },
        actions=spec.actions,
        refresh=RefreshRule(torch=spec.refresh.torch, python=spec.refresh.python),
    )


def _time_limit(spec: CiSpec, problems: Problems) -> int | None:
    if spec.time_limit is None:
        return None
    try:
        seconds = parse_duration(spec.time_limit)
    except ValueError as error:
        problems.add(("ci", "time_limit"), str(error))
        return None
    if seconds < 60:  # noqa: PLR2004 - a minute
        problems.add(("ci", "time_limit"), "a time limit is at least a minute")
    return seconds


def _runner(spec: CiRunnerSpec, reader: MatrixReader, path: Path) -> CiRunner:
    problems = reader.problems
    labels = as_tuple(spec.labels)
    if not labels:
        problems.add_empty((*path, "labels"))
    for key in ("python", "package"):
        if getattr(spec, key) is not None:
            hint = "all Pythons and packages of a block go to the same kind of machine"
            problems.add((*path, key), f"machines can't be chosen by `{key}`", hint, at_key=True)
    stages = []
    for word in as_tuple(spec.stage):
        if word in _PLACED:
            stages.append(Stage(word))
        else:
            hint = f"machines are chosen for {', '.join(_PLACED)}"
            problems.add((*path, "stage"), f"stage `{word}` has no machines of its own", hint)
    return CiRunner(
        labels=labels,
        pattern=reader.pattern(spec, path),
        stages=tuple(stages),
        capabilities=tuple(spec.capabilities),
        image=spec.image,
        prepare=tuple(spec.prepare),
    )


def _pipeline(
    name: str,
    spec: CiPipelineSpec,
    channels: Mapping[str, ChannelConfig],
    subsets: Mapping[str, object],
    problems: Problems,
) -> CiPipeline:
    path: Path = ("ci", "pipeline", name)
    if not _NAME.fullmatch(name):
        hint = "small letters, digits and hyphens: it is part of the name of a file"
        problems.add(path, f"`{name}` is not a valid name of a pipeline", hint)
    if spec.subset is not None and spec.subset not in subsets:
        hint = did_you_mean(spec.subset, subsets)
        problems.add((*path, "subset"), f"there is no [subset.{spec.subset}]", hint)
    _check_events(spec, path, problems)
    _check_hooks(spec, path, problems)
    subset = spec.subset
    channel = channels.get(spec.channel or "")
    if channel is not None:
        subset = _published(spec, channel, path, problems)
    elif spec.channel is not None:
        hint = did_you_mean(spec.channel, channels)
        problems.add((*path, "channel"), f"there is no [channel.{spec.channel}]", hint)
    if bool(spec.role) != bool(spec.region):
        problems.add(path, "`role` and `region` must be set together")
    return CiPipeline(
        name=name,
        title=spec.title,
        on=tuple(dict.fromkeys(spec.on)),
        subset=subset,
        cron=spec.cron,
        branches=tuple(spec.branches),
        tags=tuple(spec.tags),
        label=spec.label,
        channel=spec.channel,
        environment=spec.environment,
        all_jobs=spec.all_jobs,
        store=spec.store,
        role=spec.role,
        region=spec.region,
        hooks=tuple(
            CiHook(
                name=hook.name or f"{hook.at}-{number}",
                at=hook.at,
                uses=hook.uses,
                permissions=hook.permissions,
            )
            for number, hook in enumerate(spec.hook, 1)
        ),
    )


def _published(
    spec: CiPipelineSpec, channel: ChannelConfig, path: Path, problems: Problems
) -> str | None:
    """Return the subset to build for a channel."""
    if channel.promote_from is not None:
        what = f"`{channel.name}` receives promotions from `{channel.promote_from}`, not builds"
        problems.add((*path, "channel"), what, "run `torchyard channel promote` for it")
    if spec.subset is not None and spec.subset != channel.subset:
        what = f"`{channel.name}` publishes {channel.subset or 'everything'}, not `{spec.subset}`"
        problems.add((*path, "subset"), what, "leave it out")
    if CiEvent.PULL_REQUEST in spec.on:
        what = "a pull request can't publish: anyone can open one"
        problems.add((*path, "on"), what, "leave out `pull-request`, or `channel`")
    return channel.subset


def _check_hooks(spec: CiPipelineSpec, path: Path, problems: Problems) -> None:
    """Check that hooks replace no other job, and run only reviewed workflows."""
    names = [hook.name for hook in spec.hook if hook.name]
    for number, hook in enumerate(spec.hook):
        key = (*path, "hook", number)
        if hook.name and (not _HOOK.fullmatch(hook.name) or names.count(hook.name) > 1):
            hint = "letters, digits, - and _; not the name of another job"
            problems.add((*key, "name"), f"`{hook.name}` is not a valid name of a hook", hint)
        if not _REVIEWED.fullmatch(hook.uses):
            hint = "a file of this repository, `./…`, or of another one at a commit's hash"
            problems.add((*key, "uses"), f"`{hook.uses}` pins nothing", hint)


def _check_events(spec: CiPipelineSpec, path: Path, problems: Problems) -> None:
    """Check that the keys of a pipeline fit its events."""
    if not spec.on:
        problems.add_empty((*path, "on"))
    needed = {
        CiEvent.SCHEDULE: ("cron", bool(spec.cron)),
        CiEvent.TAG: ("tags", bool(spec.tags)),
    }
    for event, (key, given) in needed.items():
        if (event in spec.on) != given:
            problems.add(path, f"`{event}` in `on` and `{key}` go together")
    if spec.branches and CiEvent.PUSH not in spec.on:
        problems.add((*path, "branches"), "`branches` need `push` in `on`", at_key=True)
    if not _LABEL.fullmatch(spec.label):
        hint = "letters, digits, spaces and - _ . : / only: it becomes part of an expression"
        problems.add((*path, "label"), f"`{spec.label}` is not a valid label", hint)
    if spec.label and tuple(spec.on) != (CiEvent.PULL_REQUEST,):
        problems.add((*path, "label"), 'a `label` needs on = ["pull-request"] alone', at_key=True)
    if spec.cron and not _CRON.fullmatch(spec.cron):
        hint = "five fields: minute, hour, day, month, weekday, such as 7 3 * * *"
        problems.add((*path, "cron"), f"`{spec.cron}` is not a schedule", hint)
