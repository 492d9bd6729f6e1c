"""Turn edits of a generated workflow into settings of `[ci]`."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeGuard

import yaml

from torchyard.ci.pipeline import CiJob, CiMachine, Pipeline, Wave
from torchyard.ci.yaml import Yaml, nodes
from torchyard.config.tables import toml_value
from torchyard.errors import HostError
from torchyard.model.identifier import scope_of
from torchyard.model.recipe import Stage

_ABSENT = "(absent)"
_USED = re.compile(r"(?m)uses: (?P<action>[\w./-]+)@(?P<commit>[0-9a-f]{40})(?: # (?P<tag>\S+))?$")
_POINTS: Mapping[str, tuple[str, ...]] = {"before": (), "after-publish": ("publish",)}
_STAGES = {
    Wave.SOURCE: Stage.SOURCE,
    Wave.CORE: Stage.CORE,
    Wave.PACKAGES: Stage.PACKAGE,
    Wave.SMOKE: Stage.SMOKE,
}
_WHOLE = frozenset(("needs", "runs-on", "branches", "tags", "environment", "types"))
"""Keys whose lists mean something only as a whole."""

_WITH_KEYS = {"role-to-assume": "role", "aws-region": "region"}
"""Arguments of an action, and the keys of a pipeline that give them."""

KeyPath = tuple[str | int, ...]
Settings = dict[str, object]

_OWN_KEYS: Mapping[KeyPath, str] = {
    ("name",): "title",
    ("on", "schedule", 0, "cron"): "cron",
    ("on", "push", "branches"): "branches",
    ("on", "push", "tags"): "tags",
    ("jobs", "publish", "environment"): "environment",
}
"""Values of a workflow, and the keys of a pipeline that give them."""


class Edit(NamedTuple):
    """A value of a file that is not what was generated."""

    path: KeyPath
    old: Yaml
    new: Yaml

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.path))}: {self.old!r} → {self.new!r}"


class Adoption(NamedTuple):
    """Settings that reproduce edits, and the edits that no setting can express."""

    general: Settings
    """Keys of `[ci]`."""
    pipeline: Settings
    """Keys of the pipeline."""
    unknown: tuple[Edit, ...]


def find_edits(old: Yaml, new: Yaml, path: KeyPath = ()) -> Iterator[Edit]:
    """Yield what differs between two documents, as deep inside as possible."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys([*old, *new]):
            both = old.get(key, _ABSENT), new.get(key, _ABSENT)
            if both[0] != both[1]:
                yield from find_edits(*both, (*path, key))
        if [key for key in old if key in new] != [key for key in new if key in old]:
            yield Edit((*path, "order"), list(old), list(new))
    elif _is_list(old) and _is_list(new) and len(old) == len(new) and path[-1] not in _WHOLE:
        for number, both in enumerate(zip(old, new, strict=True)):
            yield from find_edits(*both, (*path, number))
    elif old != new:
        yield Edit(path, old, new)


def _is_list(value: Yaml) -> TypeGuard[Sequence[Yaml]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


class _Reader:
    """Reads edits one by one, and collects what each of them sets."""

    def __init__(self, pipeline: Pipeline, generated: Yaml, edits: Sequence[Edit]) -> None:
        self.pipeline = pipeline
        self.generated = generated
        self.edits = edits
        self.general: Settings = {}
        self.own: Settings = {}
        self.labels: dict[str, tuple[str, ...]] = {}
        self.hooks: list[Settings] = []

    def read(self, edit: Edit) -> bool:  # noqa: PLR0911 - one for each kind of edit
        """Return whether a setting expresses an edit, which is noted then."""
        if key := _OWN_KEYS.get(edit.path) or _WITH_KEYS.get(str(edit.path[-1])):
            return self._set(self.own, key, edit.new)
        match edit.path:
            case ("jobs", str(name), "runs-on"):
                self.labels[name] = _labels(edit.new)
                return bool(self.labels[name])
            case ("jobs", _, "timeout-minutes"):
                return self._set_everywhere(edit, "time_limit", f"{edit.new} min")
            case ("jobs", _, "steps", _, "run") if edit.old == self.pipeline.install:
                return self._set_everywhere(edit, "install", edit.new)
            case ("jobs", _, "steps", _, "uses"):
                return str(edit.new).partition("@")[0] == str(edit.old).partition("@")[0]
            case ("jobs", "publish", "needs") | ("jobs", "order"):
                return bool(self.hooks)
            case ("jobs", str(name)):
                return edit.old == _ABSENT and self._hook(name, edit.new)
            case _:
                return False

    def _set(self, settings: Settings, key: str, value: object) -> bool:
        """Note a setting; return False if another edit gave it another value."""
        return value != _ABSENT and settings.setdefault(key, value) == value

    def _set_everywhere(self, edit: Edit, key: str, value: object) -> bool:
        """Note a setting of all jobs; return False if an edit leaves some of them as they were."""
        same = [one for one in self.edits if (one.path[-1], one.new) == (edit.path[-1], edit.new)]
        places = sum(old == edit.old for _, old in nodes(self.generated, edit.path[-1]))
        return len(same) == places and self._set(self.general, key, value)

    def _hook(self, name: str, job: Yaml) -> bool:
        """Note a job of the user's own: a reusable workflow, with a point at which it runs."""
        match job:
            case {"uses": str(uses), **rest} if set(rest) <= {"needs", "permissions", "name"}:
                pass
            case _:
                return False
        needs = tuple(map(str, rest.get("needs", ()) or ()))  # type: ignore[call-overload]
        points = {**_POINTS, "after-build": self.pipeline.leaves()}
        at = next((point for point, wanted in points.items() if needs == wanted), None)
        if at is None:
            return False
        hook: Settings = {"at": at, "uses": uses, "name": name}
        if rest.get("permissions"):
            hook["permissions"] = rest["permissions"]
        self.hooks.append(hook)
        return True

    def runners(self) -> list[Settings]:
        """Return the runners that give each job its labels, as few as possible."""
        groups: dict[tuple[str, Wave, CiMachine], list[CiJob]] = {}
        for job in self.pipeline.jobs:
            if labels := self.labels.get(job.name):
                machine = job.machine._replace(labels=labels)
                groups.setdefault((_platform(job), job.wave, machine), []).append(job)
        found: list[Settings] = []
        if labels := self.labels.get("publish"):
            machine = self.pipeline.publisher._replace(labels=labels)
            found.append({**_machine(machine), "stage": [Stage.PUBLISH.value]})
        for (platform, wave, machine), jobs in groups.items():
            stages = [_STAGES[wave].value]
            if wave is Wave.PACKAGES and not any(job.skip for job in jobs):
                stages.append(Stage.SMOKE.value)  # else smoke tests would be jobs of their own
            runner: Settings = {**_machine(machine), "stage": stages}
            if platform:
                runner["platform"] = platform
            same = [j for j in self.pipeline.jobs if (_platform(j), j.wave) == (platform, wave)]
            if len(same) == len(jobs):
                found.append(runner)
            else:
                found += ({**runner, **self._block(job)} for job in jobs)
        return found

    def _block(self, job: CiJob) -> Settings:
        """Return the compute and the variant of a job's block."""
        _, compute, variant = scope_of(Stage.CORE, job.scope("").removesuffix("/"))[:3]
        return {"compute": compute, self.pipeline.variant: variant}


def _labels(value: Yaml) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(map(str, value)) if _is_list(value) else ()


def _machine(machine: CiMachine) -> Settings:
    """Return a machine as a runner of the file, prepared as before."""
    made: Settings = {"labels": list(machine.labels), "prepare": list(machine.prepare)}
    made["image"] = machine.image
    return {key: value for key, value in made.items() if value}


def _platform(job: CiJob) -> str:
    return job.scope("").partition("/")[0]


def adopt_edits(generated: str, edited: str, pipeline: Pipeline) -> Adoption:
    """Return the settings that make `generated` the same as `edited`, as far as there are such."""
    edits = sorted(compare_workflows(generated, edited), key=_hooks_first)
    reader = _Reader(pipeline, _read(generated), edits)
    unknown = tuple(edit for edit in edits if not reader.read(edit))
    if actions := _pins(generated, edited):
        reader.general["actions"] = actions
    if runners := reader.runners():
        reader.general["runner"] = runners
    if reader.hooks:
        reader.own["hook"] = reader.hooks
    return Adoption(reader.general, reader.own, unknown)


def compare_workflows(old: str, new: str) -> Iterator[Edit]:
    """Yield what differs between two workflows, apart from spelling and comments."""
    return find_edits(_read(old), _read(new))


def _read(text: str) -> dict[str, Yaml]:
    """Return a workflow; `on` without quotes means true in old YAML."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        msg = f"the workflow is no YAML: {error}"
        raise HostError(msg) from error
    if not isinstance(document, dict):
        msg = "the file is no workflow"
        raise HostError(msg)
    return {"on" if key is True else str(key): value for key, value in document.items()}


def _hooks_first(edit: Edit) -> bool:
    return len(edit.path) != 2 or edit.path[-1] == "order"  # noqa: PLR2004 - a job


def _pins(generated: str, edited: str) -> dict[str, str]:
    """Return the actions that are pinned otherwise, with the tags in their comments."""
    old, new = ({found[0] for found in _USED.finditer(text)} for text in (generated, edited))
    pins: dict[str, str] = {}
    for found in map(_USED.search, sorted(new - old)):
        if found:
            tag = f" # {found['tag']}" if found["tag"] else ""
            pins[found["action"]] = f"{found['commit']}{tag}"
    return pins


def settings_text(general: Settings, pipelines: Mapping[str, Settings]) -> str:
    """Return settings as tables of a `torchyard.toml`."""
    parts = [_table("[ci]", general)] if _plain(general) else []
    parts += [_table(f"[ci.{key}]", value) for key, value in _tables(general)]
    parts += [_table("[[ci.runner]]", runner) for runner in _rows(general, "runner")]
    for name, settings in pipelines.items():
        parts.append(_table(f"[ci.pipeline.{name}]", settings))
        hooks = _rows(settings, "hook")
        parts += [_table(f"[[ci.pipeline.{name}.hook]]", hook) for hook in hooks]
    return "\n".join(parts)


def _plain(settings: Settings) -> Settings:
    return {k: v for k, v in settings.items() if not isinstance(v, dict) and not _has_rows(v)}


def _has_rows(value: object) -> bool:
    return isinstance(value, list) and any(isinstance(item, dict) for item in value)


def _tables(settings: Settings) -> Iterator[tuple[str, Settings]]:
    yield from ((key, value) for key, value in settings.items() if isinstance(value, dict))


def _rows(settings: Settings, key: str) -> Iterable[Settings]:
    rows = settings.get(key, ())
    return rows if isinstance(rows, list) else ()


def _table(title: str, settings: Settings) -> str:
    kept = {
        key: value for key, value in settings.items() if not _has_rows(value) and value is not None
    }
    inline = title.startswith("[[") or ".pipeline." in title
    lines = (
        f"{_key(key)} = {toml_value(value)}\n"
        for key, value in kept.items()
        if inline or not isinstance(value, dict)
    )
    return f"{title}\n{''.join(lines)}"


def _key(key: str) -> str:
    return key if re.fullmatch(r"[\w-]+", key) else f'"{key}"'
