"""GitHub Actions: a workflow for each pipeline."""

import json
from collections.abc import Iterator, Mapping, Sequence

from torchyard.ci.narrow import WantedParts
from torchyard.ci.pipeline import PART, CiJob, CiMachine, Pipeline, Wave, carried_folder
from torchyard.ci.provider import Measure, ProviderTable
from torchyard.ci.yaml import CiFile, Yaml, nodes, texts_in
from torchyard.model.ci import CiEvent, HookPoint

_CHECKOUT = "actions/checkout"
_DOWNLOAD = "actions/download-artifact"
_PYTHON = "actions/setup-python"
_UPLOAD = "actions/upload-artifact"
_CREDENTIALS = "aws-actions/configure-aws-credentials"
_INDEX = "${{ strategy.job-index }}"
_IMPACT = "impact"
_PARTS = "fromJSON(needs.impact.outputs.parts || '{}')"
_BASE = "${{ github.event_name == 'pull_request' && 'HEAD^1' || '' }}"
"""A pull request is built as a merge; its first parent is the target branch."""


def files(pipelines: Sequence[Pipeline], table: ProviderTable) -> list[CiFile]:
    """Return a workflow for each pipeline."""
    return [_Workflow(pipeline, table).file() for pipeline in pipelines]


def selection(pipeline: Pipeline, wanted: WantedParts) -> str:  # noqa: ARG001 - its interface
    """Return the output of the impact job: the parts of each job, `true` without parts."""
    return f"parts={json.dumps({name: list(parts) or True for name, parts in wanted.items()})}\n"


def measures(document: Mapping[str, Yaml]) -> Iterator[Measure]:
    """Yield the number of jobs of each matrix."""
    for path, parts in nodes(document, "strategy", "matrix", "part"):
        yield Measure("matrix_jobs", len(texts_in(parts)), path)


class _Workflow:
    """Writes the workflow of one pipeline."""

    def __init__(self, pipeline: Pipeline, table: ProviderTable) -> None:
        self.pipeline = pipeline
        self.settings = pipeline.settings
        self.table = table
        shipped = {name: f"{pin.commit} # {pin.tag}" for name, pin in table.actions.items()}
        self.pins = {
            name: pin.partition(" # ") for name, pin in {**shipped, **pipeline.pins}.items()
        }

    def file(self) -> CiFile:
        jobs: dict[str, Yaml] = {}
        first = self._hooks("before", jobs, ())
        if self.settings.is_narrowed:
            jobs[_IMPACT] = self._impact()
        for job in self.pipeline.jobs:
            jobs[job.name] = self._job(job, () if job.needs else first)
        leaves = self.pipeline.leaves()
        built = self._hooks("after-build", jobs, leaves) or leaves
        if self.settings.channel is not None:
            jobs["publish"] = self._publish(built)
            self._hooks("after-publish", jobs, ("publish",))
        document: dict[str, Yaml] = {
            "name": self.settings.title or f"torchyard: {self.settings.name}",
            "on": self._triggers(),
            "permissions": {},
            "concurrency": self._concurrency(),
            "defaults": {"run": {"shell": "bash"}},
            "jobs": jobs,
        }
        notes = {f"{name}@{commit}": tag for name, (commit, _, tag) in self.pins.items() if tag}
        notes["id-token: write"] = "to prove who publishes, without a secret"
        path = f".github/workflows/torchyard-{self.settings.name}.yml"
        return CiFile(path, document, notes, self._measured())

    def _measured(self) -> dict[str, int]:
        """Return the size of the output with the names of all jobs, if there is one."""
        if not self.settings.is_narrowed:
            return {}
        wanted = {job.name: job.parts for job in self.pipeline.jobs}
        return {"output_bytes": len(selection(self.pipeline, wanted))}

    def _impact(self) -> dict[str, Yaml]:
        """Return the job that decides which others run."""
        machine = self.pipeline.jobs[0].machine
        if not machine.image:  # else it may lack Python
            machine = machine._replace(prepare=())
        prepared = self._prepare(machine, self.pipeline.pythons[-1:], history=2)
        command = f'{self.pipeline.impact_command("github", "BASE")} >> "$GITHUB_OUTPUT"'
        return {
            "name": _IMPACT,
            **self._label_condition(),
            **self._machine(machine),
            "permissions": {"contents": "read"},
            "outputs": {"parts": f"${{{{ steps.{_IMPACT}.outputs.parts }}}}"},
            "env": {"BASE": _BASE},
            "steps": [*prepared, {"id": _IMPACT, "run": command}],
        }

    def _label_condition(self) -> dict[str, Yaml]:
        label = self.settings.label
        condition = f"contains(github.event.pull_request.labels.*.name, '{label}')"
        return {"if": condition} if label else {}

    def _condition(self, job: CiJob) -> dict[str, Yaml]:
        """Let a job run if it is wanted, even if a job that it needs is not."""
        if not self.settings.is_narrowed:
            return self._label_condition()
        return {"if": f"${{{{ !failure() && !cancelled() && {_PARTS}['{job.name}'] != null }}}}"}

    def _triggers(self) -> dict[str, Yaml]:
        branches: dict[str, Yaml] = {"branches": list(self.settings.branches)}
        made: dict[CiEvent, tuple[str, Yaml]] = {
            CiEvent.PULL_REQUEST: ("pull_request", self._pull_request()),
            CiEvent.PUSH: ("push", branches if self.settings.branches else {"branches": ["**"]}),
            CiEvent.TAG: ("push", {"tags": list(self.settings.tags)}),
            CiEvent.SCHEDULE: ("schedule", [{"cron": self.settings.cron}]),
            CiEvent.MANUAL: ("workflow_dispatch", None),
        }
        triggers: dict[str, Yaml] = {}
        for event in self.settings.on:
            name, value = made[event]
            known = triggers.get(name)
            both = isinstance(known, dict) and isinstance(value, dict)
            triggers[name] = {**known, **value} if both else value  # type: ignore[dict-item]
        return triggers

    def _pull_request(self) -> Yaml:
        return {"types": ["labeled", "synchronize", "reopened"]} if self.settings.label else None

    def _concurrency(self) -> dict[str, Yaml]:
        """Cancel only outdated runs of a pull request; let others wait their turn."""
        group = "${{ github.workflow }}"
        if self.settings.channel is None:
            group += "-${{ github.event.pull_request.number || github.run_id }}"
        return {"group": group, "cancel-in-progress": self.settings.is_superseded}

    def _job(self, job: CiJob, first: tuple[str, ...]) -> dict[str, Yaml]:
        made: dict[str, Yaml] = {"name": _title(job)}
        made |= self._condition(job)
        needs = [*first, *job.needs]
        if self.settings.is_narrowed:
            needs.insert(0, _IMPACT)
        if needs:
            made["needs"] = needs
        made |= self._machine(job.machine)
        made["permissions"] = {"contents": "read"}
        if job.parts:
            wanted = f"${{{{ {_PARTS}['{job.name}'] }}}}"
            parts: Yaml = wanted if self.settings.is_narrowed else list(job.parts)
            made["strategy"] = {"fail-fast": False, "matrix": {"part": parts}}
            made["env"] = {PART: "${{ matrix.part }}"}
        commands = [*self.pipeline.pull_commands(job.waves), self.pipeline.build_command(job)]
        commands += self.pipeline.push_commands(job)
        made["steps"] = [
            *self._prepare(job.machine, self.pipeline.pythons_of(job)),
            *self._downloads(job.needs, job.waves, job),
            *({"run": command} for command in commands),
            *self._uploads(job),
        ]
        return made

    def _machine(self, machine: CiMachine) -> dict[str, Yaml]:
        labels = list(machine.labels)
        made: dict[str, Yaml] = {
            "runs-on": labels[0] if len(labels) == 1 else labels,
            "timeout-minutes": self.pipeline.minutes,
        }
        return made | ({"container": machine.image} if machine.image else {})

    def _prepare(
        self, machine: CiMachine, pythons: Sequence[str], history: int = 1
    ) -> Iterator[Yaml]:
        """Yield the first steps of each job; `history` is the number of commits it needs."""
        given: dict[str, Yaml] = {"persist-credentials": False}
        if history > 1:
            given["fetch-depth"] = history
        yield {"uses": self._pinned(_CHECKOUT), "with": given}
        for command in machine.prepare:
            yield {"run": command}
        versions = "\n".join(pythons)
        asked: dict[str, Yaml] = {"python-version": versions, "allow-prereleases": True}
        if not machine.image:  # its Pythons are for hosted machines
            yield {"uses": self._pinned(_PYTHON), "with": asked}
        yield {"run": self.pipeline.install}
        if machine.image and len(pythons) > 1:
            yield {"run": " ".join(["uv", "python", "install", *pythons[:-1]])}

    def _downloads(
        self, needs: Sequence[str], waves: Sequence[Wave], job: CiJob | None = None
    ) -> Iterator[Yaml]:
        """Yield the steps that fetch results; a later round continues only its own part."""
        for wave in waves if self.pipeline.carried else ():
            named = [name for name in needs if name.split("-")[0] == wave]
            pattern = f"carried-{named[0]}-*" if len(named) == 1 else f"carried-{wave}-*"
            if job and job.wave is wave:
                pattern = f"carried-{job.needs[0]}-{_INDEX}"
            taken: dict[str, Yaml] = {
                "pattern": pattern,
                "path": carried_folder(wave),
                "merge-multiple": True,
            }
            yield {"uses": self._pinned(_DOWNLOAD), "with": taken}

    def _uploads(self, job: CiJob) -> Iterator[Yaml]:
        if job.is_packing:
            yield self._upload(f"{job.name}-{_INDEX}", self.pipeline.package_folder)
        if self.pipeline.is_handed_on(job):
            yield self._upload(f"carried-{job.name}-{_INDEX}", carried_folder(job.wave))

    def _upload(self, name: str, path: str) -> Yaml:
        sent: dict[str, Yaml] = {
            "name": name,
            "path": path,
            "include-hidden-files": True,
            "if-no-files-found": "error",
            "compression-level": 0,
        }
        return {"uses": self._pinned(_UPLOAD), "with": sent}

    def _publish(self, needs: Sequence[str]) -> dict[str, Yaml]:
        """Return the publishing job: the only one with a token, behind the environment's gate.

        It is in the workflow itself: trusted publishing does not work in reusable workflows.
        """
        pipeline, settings = self.pipeline, self.settings
        made: dict[str, Yaml] = {"name": f"publish to {settings.channel}", "needs": list(needs)}
        made |= self._machine(pipeline.publisher)
        made["environment"] = settings.environment or settings.channel
        made["permissions"] = {"contents": "read", "id-token": "write"}
        steps = [*self._prepare(pipeline.publisher, pipeline.pythons[-1:])]
        steps += self._downloads((), pipeline.waves)
        if settings.role:
            role: dict[str, Yaml] = {"role-to-assume": settings.role, "aws-region": settings.region}
            steps.append({"uses": self._pinned(_CREDENTIALS), "with": role})
        steps += ({"run": command} for command in pipeline.publish_commands())
        if pipeline.channel_folder:
            steps.append(self._upload(f"channel-{settings.channel}", pipeline.channel_folder))
        made["steps"] = steps
        return made

    def _hooks(
        self, point: HookPoint, jobs: dict[str, Yaml], needs: tuple[str, ...]
    ) -> tuple[str, ...]:
        """Add the user's reusable workflows for a point; return the names of their jobs."""
        names = []
        for hook in self.settings.hooks:
            if hook.at == point:
                job: dict[str, Yaml] = {"needs": list(needs)} if needs else {}
                job["permissions"] = dict(hook.permissions)
                jobs[hook.name] = {**job, "uses": hook.uses}
                names.append(hook.name)
        return tuple(names)

    def _pinned(self, action: str) -> str:
        return f"{action}@{self.pins[action][0]}"


def _title(job: CiJob) -> str:
    title = job.name.replace("-", " ", 1)
    return f"{title} ${{{{ matrix.part }}}}" if job.parts else title
