"""The workflow that is generated for PyTorch makes the binaries of upstream's own generator."""

import re
import tomllib
from itertools import product
from pathlib import Path
from typing import Any

import yaml
from tests.support.helpers import EXAMPLE, config_of

from torchyard.ci.generate import generate_files
from torchyard.model.matrix import matches
from torchyard.model.recipe import Stage
from torchyard.plan.build import make_plan
from torchyard.plan.graph import Plan
from torchyard.plan.select import PlanSelection

Binary = tuple[str, str, str, str]
Node = dict[str, Any]  # type: ignore[explicit-any] # what a TOML or YAML file holds

FACTS = tomllib.loads(Path(__file__).parents[1].joinpath("upstream_matrix.toml").read_text("utf-8"))
_GLOB = re.compile(r'torchyard build .*?"(\*:[^"]+)"$')


def listed(rows: list[Node]) -> list[Binary]:
    """Return each binary of some rows: its platform, package, compute platform and Python."""
    return [
        (row["platform"], row["package"], compute, python)
        for row in rows
        for compute, python in product(row["compute"], row["python"])
    ]


def made_by(workflow: Node, plan: Plan) -> list[Binary]:
    """Return what the commands of a workflow build, by their globs over the jobs of the plan."""
    packages = [job for job in plan.jobs if job.stage is Stage.PACKAGE]
    made = []
    for job in workflow["jobs"].values():
        parts = job.get("strategy", {}).get("matrix", {}).get("part", [])
        globs = [found[1] for step in job["steps"] if (found := _GLOB.match(step.get("run", "")))]
        for glob, part in product(globs, parts):
            chosen = glob.replace("$PART", part)
            made += [one.scope for one in packages if matches(one.identifier, chosen)]
    return [(platform, kind, compute, python) for platform, compute, _, python, kind in made]


def test_the_workflow_makes_the_binaries_of_upstream() -> None:
    config = config_of(EXAMPLE.read_text(encoding="utf-8"))
    plan = make_plan(config, PlanSelection("nightly"))
    said: list[str] = []
    files = generate_files(
        "github", config, lambda _: plan, file="torchyard.toml", only="nightly", say=said.append
    )
    workflow = yaml.safe_load(files[".github/workflows/torchyard-nightly.yml"])
    upstream, left_out, added = (listed(FACTS[key]) for key in ("upstream", "left_out", "added"))
    assert (len(upstream), len(left_out), len(added)) == (167, 17, 7)
    assert set(left_out) <= set(upstream)
    assert not set(added) & set(upstream)
    wanted = {*upstream, *added} - {*left_out}
    assert len(wanted) == 157
    linux = {binary for binary in wanted if binary[0].startswith("linux")}
    assert sorted(made_by(workflow, plan)) == sorted(linux)
    notes = [note for note in said if "torchyard can't build on" in note]
    counts = [int(note.partition("nightly: ")[2].split()[0]) for note in notes]
    assert sum(counts) == len(wanted - linux) == 57
