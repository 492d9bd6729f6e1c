"""What holds for the files of every plan: limits, and that each job runs once, after its inputs."""

import yaml
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from tests.property.strategies import TABLES, Toml, configs
from tests.support.examples import examples
from tests.support.helpers import config_of, toml_text

from torchyard.ci.explain import JobIndex
from torchyard.ci.fold import LEVELS, admit_blocks
from torchyard.ci.generate import (
    beyond_limits,
    ci_pipelines,
    fold_all,
    fold_pipeline,
    machine_chooser,
)
from torchyard.ci.pipeline import CiJob, Pipeline, Wave
from torchyard.ci.provider import ProviderTable, load_provider_table
from torchyard.ci.registry import find_provider, provider_names
from torchyard.ci.yaml import Yaml, dump_yaml, render
from torchyard.errors import PlanError, SelectionError
from torchyard.model.config import Config
from torchyard.model.matrix import matches
from torchyard.plan.build import make_plan
from torchyard.plan.graph import Job, Plan
from torchyard.plan.select import PlanSelection


def plan_subset(config: Config, subset: str | None) -> Plan | None:
    try:
        return make_plan(config, PlanSelection(subset))
    except (PlanError, SelectionError):
        return None


def selects(job: CiJob, part: str, planned: Job) -> bool:
    """Whether the command of a part runs a job of the plan, or makes it on the way."""
    globs = [glob.replace("$PART", part) for glob in job.select]
    skipped = any(matches(planned.identifier, glob) for glob in job.skip)
    if planned.stage in ("core", "bindings") and job.wave is Wave.PACKAGES:
        return planned.path.startswith(job.scope(part)) or job.scope(part).startswith(planned.path)
    return not skipped and any(matches(planned.identifier, glob) for glob in globs)


def check_jobs(pipeline: Pipeline, plan: Plan) -> None:
    """Each job of the plan runs in one part, and its inputs before it or in the same part."""
    named = {job.name: job for job in pipeline.jobs}
    runs: dict[int, tuple[str, str]] = {}
    order = {job.name: number for number, job in enumerate(pipeline.jobs)}
    places = JobIndex(pipeline)
    for planned in plan.jobs:
        rounds = places.find(planned)
        assert bool(rounds) == (planned.stage != "publish")
        if not rounds:
            continue
        job, part = rounds[-1]
        assert len(rounds) == job.rounds
        assert selects(job, part, planned)
        runs[planned.number] = (job.name, part)
        for number in planned.inputs:
            if runs[number] != runs[planned.number]:
                assert runs[number][0] in named[job.name].needs
    for job in pipeline.jobs:
        assert all(order[name] < order[job.name] for name in job.needs)


@given(configs(), st.sampled_from(LEVELS), st.sampled_from(provider_names()))
@settings(max_examples=examples(12), suppress_health_check=list(HealthCheck))
def test_each_job_of_a_plan_runs_once_and_after_its_inputs(
    toml: Toml, level: int, provider: str
) -> None:
    config = config_of(toml_text({**toml, "store": STORE, "ci": CI}))
    table = load_provider_table(provider)
    for pipeline in ci_pipelines(config):
        planned = plan_subset(config, pipeline.subset)
        plan = planned and admitted(planned, table)
        if plan:
            folded = fold_pipeline(pipeline, plan, table, file="torchyard.toml", level=level)
            check_jobs(folded, plan)


def admitted(plan: Plan, table: ProviderTable) -> Plan | None:
    """Return what of a plan can be built, or None."""
    kept, _ = admit_blocks(plan, machine_chooser(plan.config, table))
    return kept if any(kept.cells()) else None


CI: Toml = {"install": "true", "runner": [{"labels": "large-enough"}]}
STORE = {"url": "s3://bucket/store"}
LARGE = {
    "platform": list(TABLES.platforms),
    "compute": list(TABLES.compute),
    "blas": list(TABLES.blas),
    "python": list(TABLES.pythons),
    "package": ["wheel", "libtorch", "conda", "conda-libtorch", "conda-meta"],
}
"""A matrix far beyond 2,000 cells, of which parts are drawn."""


@st.composite
def large(draw: st.DrawFn) -> Toml:
    """A matrix of hundreds of cells, up to 2,000."""
    matrix: Toml = {
        key: draw(st.lists(st.sampled_from(values), min_size=len(values) // 2, unique=True))
        for key, values in LARGE.items()
    }
    return {
        "project": {"name": "torch", "version": "2.14.0", "release": "none"},
        "source": {"git": "https://example.org/pytorch", "rev": "v2.14.0"},
        "requirements": {"core": {"time": draw(st.sampled_from(["10 min", "7 h", "30 h"]))}},
        "matrix": matrix,
        "store": STORE,
        "ci": CI,
        "channel": {"all": {"url": draw(st.sampled_from(["./all", "s3://bucket/all"]))}},
    }


def check_refusal(config: Config, plan: Plan, table: ProviderTable) -> None:
    """Check that a provider does not admit as many jobs as there are blocks, in all rounds."""
    (pipeline, *_), level = ci_pipelines(config), LEVELS[-1]
    kept = admitted(plan, table)
    if kept is None:
        return
    coarsest = fold_pipeline(pipeline, kept, table, file="torchyard.toml", level=level)
    jobs = sum(max(1, len(job.parts)) for job in coarsest.jobs)
    assert jobs > table.limits["pipeline_jobs"]


@given(large())
@settings(max_examples=examples(2), suppress_health_check=list(HealthCheck))
def test_no_file_is_beyond_a_limit_of_its_provider(toml: Toml) -> None:
    config = config_of(toml_text(toml))
    plan = plan_subset(config, None)
    assume(plan is not None and len(list(plan.cells())) <= 2000)
    assert plan is not None
    for name in provider_names():
        provider, table = find_provider(name), load_provider_table(name)
        try:
            folded = list(fold_all(name, config, lambda _: plan, file="torchyard.toml"))
        except PlanError:
            check_refusal(config, plan, table)
            continue
        made = provider.files([pipeline for pipeline, _ in folded], table)
        texts = {one.path: render(one, source="torchyard.toml", command="x") for one in made}
        assert not list(beyond_limits(provider, table, made, texts))
        for pipeline, _ in folded:
            rows = [max(1, len(job.parts)) for job in pipeline.jobs]
            assert max(rows) <= table.limits.get("matrix_jobs", max(rows))


TEXTS = st.text(
    st.sampled_from(" -:#'\"\n{}[]!&*%@|>?,.=~019abeEonfxy_T+\t\\\x7f\x85\u2028\ufeff\U0001f600")
    | st.characters(exclude_categories=["Cs"])
)
DOCUMENTS = st.dictionaries(
    TEXTS,
    st.recursive(
        st.none() | st.booleans() | st.integers() | TEXTS,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
        max_leaves=12,
    ),
    min_size=1,
)


@given(DOCUMENTS)
@example({"on": "on", "no": ["1:30", "2026-11-18", "0o7", "1e3", "<<", "=", "~", "- x", "x: y"]})
@example({"run": "one\n\n  two\n", "kept": "\n x\n\n", "cut": " x\ny", "quoted": "x \ny"})
def test_a_parser_reads_what_was_written(document: dict[str, Yaml]) -> None:
    assert yaml.safe_load(dump_yaml(document)) == document
