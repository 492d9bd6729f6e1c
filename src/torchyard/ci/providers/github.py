"""GitHub Actions: a workflow for each pipeline."""

from collections.abc import Iterator, Mapping, Sequence

from torchyard.ci.pipeline import PART, CiJob, CiMachine, Pipeline, Wave, carried_folder
from torchyard.ci.provider import Measure, ProviderTable
from torchyard.ci.yaml import CiFile, Yaml, nodes, texts_in
from torchyard.model.ci import CiEvent, HookPoint

_CHECKOUT = "actions/checkout"
_DOWNLOAD = "actions/download-artifact"
_PYTHON = "actions/setup-python"
_UPLOAD = "actions/upload-artifact"
_CREDENTIALS = "aws-actions/configure-aws-credentials"


def files(pipelines: Sequence[Pipeline], table: ProviderTable) -> list[CiFile]:
    """Return a workflow for each pipeline."""
    return [_Workflow(pipeline, table).file() for pipeline in pipelines]


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
        return CiFile(f".github/workflows/torchyard-{self.settings.name}.yml", document, notes)

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
        """Cancel only runs of a pull request that got new commits; let others wait their turn."""
        group = "${{ github.workflow }}"
        if self.settings.channel is None:
            group += "-${{ github.event.pull_request.number || github.run_id }}"
        return {"group": group, "cancel-in-progress": self.settings.is_superseded}

    def _job(self, job: CiJob, first: tuple[str, ...]) -> dict[str, Yaml]:
        made: dict[str, Yaml] = {"name": _title(job)}
        if self.settings.label:
            label = self.settings.label
            made["if"] = f"contains(github.event.pull_request.labels.*.name, '{label}')"
        needs = [*first, *job.needs]
        if needs:
            made["needs"] = needs
        made |= self._machine(job.machine)
        made["permissions"] = {"contents": "read"}
        if job.parts:
            made["strategy"] = {"fail-fast": False, "matrix": {"part": list(job.parts)}}
            made["env"] = {PART: "${{ matrix.part }}"}
        commands = [*self.pipeline.pull_commands(job.waves), self.pipeline.build_command(job)]
        commands += self.pipeline.push_commands(job)
        made["steps"] = [
            *self._prepare(job.machine, self.pipeline.pythons_of(job)),
            *self._downloads(job.needs, job.waves),
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

    def _prepare(self, machine: CiMachine, pythons: Sequence[str]) -> Iterator[Yaml]:
        yield {"uses": self._pinned(_CHECKOUT), "with": {"persist-credentials": False}}
        for command in machine.prepare:
            yield {"run": command}
        versions = "\n".join(pythons)
        asked: dict[str, Yaml] = {"python-version": versions, "allow-prereleases": True}
        yield {"uses": self._pinned(_PYTHON), "with": asked}
        yield {"run": self.pipeline.install}

    def _downloads(self, needs: Sequence[str], waves: Sequence[Wave]) -> Iterator[Yaml]:
        if not self.pipeline.carried:
            return
        for wave in waves:
            named = [name for name in needs if name.split("-")[0] == wave]
            pattern = f"carried-{named[0]}-*" if len(named) == 1 else f"carried-{wave}-*"
            taken: dict[str, Yaml] = {
                "pattern": pattern,
                "path": carried_folder(wave),
                "merge-multiple": True,
            }
            yield {"uses": self._pinned(_DOWNLOAD), "with": taken}

    def _uploads(self, job: CiJob) -> Iterator[Yaml]:
        if self.pipeline.carried:
            name = f"carried-{job.name}-${{{{ strategy.job-index }}}}"
            yield self._upload(name, carried_folder(job.wave))

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
        """Return the job that publishes: the only one with a token, behind the environment's gate.

        It is in the workflow itself: trusted publishing does not work in reusable workflows.
        """
        pipeline, settings = self.pipeline, self.settings
        made: dict[str, Yaml] = {"name": f"publish to {settings.channel}", "needs": list(needs)}
        made |= self._machine(pipeline.publisher)
        made["environment"] = settings.environment or settings.channel
        made["permissions"] = {"contents": "read", "id-token": "write"}
        waves = tuple(dict.fromkeys(job.wave for job in pipeline.jobs))
        commands = [*pipeline.pull_commands(waves), pipeline.publish_command()]
        prepared = self._prepare(pipeline.publisher, pipeline.pythons[-1:])
        steps = [*prepared, *self._downloads((), waves)]
        if settings.role:
            role: dict[str, Yaml] = {"role-to-assume": settings.role, "aws-region": settings.region}
            steps.append({"uses": self._pinned(_CREDENTIALS), "with": role})
        steps += ({"run": command} for command in commands)
        if pipeline.channel_folder:
            steps.append(self._upload(f"channel-{settings.channel}", pipeline.channel_folder))
        made["steps"] = steps
        return made

    def _hooks(
        self, point: HookPoint, jobs: dict[str, Yaml], needs: tuple[str, ...]
    ) -> tuple[str, ...]:
        """Add the user's own reusable workflows for a point; return the names of their jobs."""
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
