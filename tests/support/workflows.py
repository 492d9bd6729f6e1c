"""Runs a workflow of GitHub Actions on this machine: its jobs, matrices, artifacts and commands.

Each job gets a new copy of the repository, as on a hosted runner; nothing but artifacts passes from
one to another. Actions are imitated, and any other than those that are known fails.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import yaml

Node = dict[str, Any]  # type: ignore[explicit-any] # what a YAML file holds

_EXPRESSION = re.compile(r"\$\{\{ (matrix\.part|strategy\.job-index|github\.event_name .*?) \}\}")
_BASE = "github.event_name == 'pull_request' && 'HEAD^1' || ''"
_PARTS = r"fromJSON\(needs\.impact\.outputs\.parts \|\| '\{\}'\)\['([\w-]+)'\]"
_CONDITION = re.compile(rf"\$\{{\{{ !failure\(\) && !cancelled\(\) && {_PARTS} != null \}}\}}")
_ROWS = re.compile(rf"\$\{{\{{ {_PARTS} \}}\}}")


class Row(NamedTuple):
    """One job of a matrix."""

    number: int
    part: str
    base: str = ""

    def fill(self, text: str) -> str:
        values = {"matrix.part": self.part, "strategy.job-index": str(self.number)}
        values[_BASE] = self.base
        return _EXPRESSION.sub(lambda found: values[found[1]], text)


class WorkflowRun:
    """One run of a workflow: where its jobs work, and the artifacts that they leave."""

    def __init__(
        self,
        repository: Path,
        folder: Path,
        env: Mapping[str, str],
        event: str = "push",
        workspace: Path | None = None,
    ) -> None:
        """Each job works in a directory of its own; in `workspace`, it is emptied before."""
        self.repository = repository
        self.folder = folder
        self.workspace = workspace
        self.env = env
        self.artifacts = folder / "artifacts"
        self.artifacts.mkdir(parents=True)
        self.commands: list[str] = []
        self.base = "HEAD^1" if event == "pull_request" else ""
        self.parts: dict[str, list[str] | bool] = {}
        """What the job `impact` chose."""

    def run(self, workflow: Path) -> list[str]:
        """Run all jobs, each after those that it needs, and return their names."""
        jobs: dict[str, Node] = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"]
        done: list[str] = []
        while len(done) < len(jobs):
            ready = [
                n for n, j in jobs.items() if n not in done and {*j.get("needs", ())} <= {*done}
            ]
            assert ready, f"{jobs.keys() - {*done}} wait for each other"
            for name in ready:
                for row in self._rows(jobs[name]):
                    self._job(name, jobs[name], row)
                done.append(name)
        return [name for name in done if self._is_wanted(jobs[name])]

    def _is_wanted(self, job: Node) -> bool:
        """Evaluate the condition of a job; any but those that are known fails."""
        if "if" not in job:
            return True
        condition = _CONDITION.fullmatch(job["if"])
        assert condition, job["if"]
        return condition[1] in self.parts

    def _rows(self, job: Node) -> Iterator[Row]:
        parts = job.get("strategy", {}).get("matrix", {}).get("part", [""])
        if isinstance(parts, str):
            named = _ROWS.fullmatch(parts)
            assert named, parts
            chosen = self.parts.get(named[1])
            parts = chosen if isinstance(chosen, list) else []
        if self._is_wanted(job):
            yield from (Row(index, part, self.base) for index, part in enumerate(parts))

    def _job(self, name: str, job: Node, row: Row) -> None:
        place = self.workspace or self.folder / "jobs" / f"{name}-{row.number}"
        shutil.rmtree(place, ignore_errors=True)
        env = {**self.env, **{key: row.fill(text) for key, text in job.get("env", {}).items()}}
        place.parent.mkdir(parents=True, exist_ok=True)
        output = self.folder / f"{name}-{row.number}.output"
        env["GITHUB_OUTPUT"] = str(output)
        for step in job["steps"]:
            if "uses" in step:
                self._use(step["uses"], step.get("with", {}), place, row)
            else:
                self.commands.append(step["run"])
                words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
                done = subprocess.run(
                    words, cwd=place, env=env, stdout=-1, stderr=-2, text=True, check=False
                )
                assert done.returncode == 0, f"{name} {row}: {step['run']}\n{done.stdout}"
        if "outputs" in job:
            assert job["outputs"] == {"parts": "${{ steps.impact.outputs.parts }}"}
            self.parts = json.loads(output.read_text(encoding="utf-8").removeprefix("parts="))
        shutil.rmtree(place / ".torchyard/work", ignore_errors=True)

    def _use(self, action: str, given: Node, place: Path, row: Row) -> None:
        name, _, commit = action.partition("@")
        assert re.fullmatch("[0-9a-f]{40}", commit), f"{action} is not pinned"
        match name:
            case "actions/checkout":
                assert given["persist-credentials"] is False
                shutil.copytree(self.repository, place)
            case "actions/setup-python":
                pass
            case "actions/upload-artifact":
                kept = self.artifacts / row.fill(given["name"])
                assert not kept.exists(), f"{kept.name} is taken"
                source = place / given["path"]
                assert any(path.is_file() for path in source.rglob("*")), f"{source} is empty"
                shutil.copytree(source, kept)
            case "actions/download-artifact":
                for kept in self.artifacts.iterdir():
                    if fnmatchcase(kept.name, row.fill(given["pattern"])):
                        shutil.copytree(kept, place / given["path"], dirs_exist_ok=True)
            case _:
                msg = f"what does {action} do?"
                raise AssertionError(msg)


def runner_environment(bin_folder: Path) -> dict[str, str]:
    """Return the variables of a runner: those of this process, without any of CI.

    Programs that install something on the machine are fakes, in `stand_ins`.
    """
    env = {key: value for key, value in os.environ.items() if not key.startswith("GITHUB_")}
    folders = (str(Path(__file__).parents[1] / "stand_ins"), str(bin_folder), env["PATH"])
    return {**env, "PATH": os.pathsep.join(folders), "NO_COLOR": "1"}
