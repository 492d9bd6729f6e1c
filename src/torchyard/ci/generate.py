"""Generate a provider's files from a config, folded so that they keep the provider's limits."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from torchyard.ci.fold import LEVELS, Folding, Machines, fold_plan
from torchyard.ci.pipeline import CiMachine, Pipeline, file_words
from torchyard.ci.provider import CiProvider, Measure, ProviderTable, load_provider_table
from torchyard.ci.registry import find_provider
from torchyard.ci.yaml import CiFile, render
from torchyard.errors import PlanError, SelectionError
from torchyard.host.files import dirname, join
from torchyard.model.ci import CiEvent, CiPipeline, CiSettings
from torchyard.model.config import Config
from torchyard.model.quantity import listed
from torchyard.model.recipe import Stage
from torchyard.plan.graph import Plan
from torchyard.version import __version__

Planner = Callable[[str | None], Plan]
"""Returns the plan of a subset; None: of the whole matrix."""


class _Folded(NamedTuple):
    """Pipelines that keep the limits of their provider, and the texts of their files."""

    pipelines: list[Pipeline]
    plans: list[Plan]
    texts: dict[str, str]


def generate_files(
    name: str, config: Config, planner: Planner, *, file: str, only: str | None = None
) -> dict[str, str]:
    """Return the text of each file that a provider needs, by its path in the repository.

    Args:
        name: The provider.
        config: The configuration; its `[ci]` says what runs when.
        planner: Plans a subset.
        file: The path of the configuration, from the top of the repository.
        only: The one subset whose pipelines are wanted.
    """
    wanted = [p for p in ci_pipelines(config) if only is None or p.subset == only]
    if not wanted:
        msg = f"no pipeline builds the subset `{only}`"
        raise SelectionError(msg, hint=f'write [ci.pipeline.{only}] with subset = "{only}"')
    return _fold(name, planner, wanted, file).texts


def fold_all(
    name: str, config: Config, planner: Planner, *, file: str
) -> Iterator[tuple[Pipeline, Plan]]:
    """Yield all pipelines of a provider, folded as in its files, with their plans."""
    folded = _fold(name, planner, ci_pipelines(config), file)
    return zip(folded.pipelines, folded.plans, strict=True)


def _fold(name: str, planner: Planner, wanted: Sequence[CiPipeline], file: str) -> _Folded:
    """Fold pipelines as finely as the provider's limits allow, or raise PlanError."""
    provider, table = find_provider(name), load_provider_table(name)
    plans = [planner(pipeline.subset) for pipeline in wanted]
    beyond: list[Measure] = []
    for level in LEVELS:
        folded = [
            fold_pipeline(one, plan, table, file=file, level=level)
            for one, plan in zip(wanted, plans, strict=True)
        ]
        made = provider.files(folded, table)
        command = " ".join(["torchyard", "ci", "generate", *file_words(file)])
        texts = {one.path: render(one, source=file, command=command) for one in made}
        beyond = list(beyond_limits(provider, table, made, texts))
        if not beyond:
            return _Folded(folded, plans, texts)
    worst = beyond[0]
    allowed = table.limits[worst.limit]
    what = worst.limit.replace("_", " ")
    msg = f"{table.title} allows {allowed:,} {what}, and {worst.what} has {worst.value:,}"
    raise PlanError(msg, hint="let pipelines build smaller subsets: `subset` in [ci.pipeline.NAME]")


def beyond_limits(
    provider: CiProvider, table: ProviderTable, made: Sequence[CiFile], texts: Mapping[str, str]
) -> Iterator[Measure]:
    """Yield every number of some files that is beyond the provider's limit."""
    for one in made:
        size = Measure("file_bytes", len(texts[one.path].encode()), one.path)
        hidden = (Measure(limit, value, one.path) for limit, value in one.measured.items())
        for measure in (size, *hidden, *provider.measures(one.document)):
            if measure.value > table.limits.get(measure.limit, measure.value):
                yield measure


def ci_pipelines(config: Config) -> list[CiPipeline]:
    """Return the pipelines of a file; if it names none, one for pull requests and each channel."""
    if config.ci.pipelines:
        return list(config.ci.pipelines.values())
    checked = CiPipeline(
        name="pull-request",
        on=(CiEvent.PULL_REQUEST, CiEvent.MANUAL),
        subset="pr" if "pr" in config.subsets else None,
    )
    published = [
        CiPipeline(
            name=channel.name, on=(CiEvent.MANUAL,), subset=channel.subset, channel=channel.name
        )
        for channel in config.channels.values()
        if channel.promote_from is None
    ]
    return [checked, *published]


def written_pipelines(config: Config) -> dict[str, dict[str, object]]:
    """Return all pipelines as a file would write them."""
    written: dict[str, dict[str, object]] = {}
    for pipeline in ci_pipelines(config):
        plain = msgspec.to_builtins(pipeline)
        plain["hook"] = plain.pop("hooks", [])
        name = plain.pop("name")
        if pipeline.channel is not None:
            plain.pop("subset", None)
        written[name] = {key: value for key, value in plain.items() if value}
    return written


def fold_pipeline(
    pipeline: CiPipeline, plan: Plan, table: ProviderTable, *, file: str, level: int
) -> Pipeline:
    """Return the jobs of one pipeline for one provider."""
    config, settings = plan.config, plan.config.ci
    longest = table.limits["job_minutes"]
    minutes = settings.time_limit // 60 if settings.time_limit else longest
    choose = machine_chooser(settings, table)
    carried = "://" not in (pipeline.store or config.store)
    if carried and not table.carries:
        msg = f"{table.title} can't carry results from job to job, and the store is a directory"
        raise PlanError(msg, hint='name a store that all machines reach: [store] url = "s3://…"')
    jobs = fold_plan(
        Folding(
            plan=plan,
            level=level,
            machines=choose,
            matrix=table.limits.get("matrix_jobs", len(plan)),
            minutes=minutes,
        )
    )
    channel = config.channels.get(pipeline.channel or "")
    first = next(job.scope[:3] for job in plan.jobs if job.scope)
    return Pipeline(
        settings=pipeline,
        file=file,
        install=settings.install or table.install.replace("{version}", __version__),
        pythons=_pythons(plan, settings.python or table.python),
        jobs=tuple(jobs),
        publisher=choose(first, Stage.PUBLISH, frozenset()),
        carried=carried,
        channel_folder=join(dirname(file), channel.url)
        if channel and "://" not in channel.url
        else "",
        minutes=minutes,
        variant=config.project.recipe.variant.value,
        pins=settings.actions,
    )


def _pythons(plan: Plan, own: str) -> tuple[str, ...]:
    """Return the versions of the Pythons that are built for, and the one that runs torchyard."""
    known = plan.config.tables.pythons
    rows = [known[name] for name in dict.fromkeys(c.python for c in plan.cells()) if name in known]
    versions = [f"{row.version}t" if row.free_threaded else row.version for row in rows]
    return (*(version for version in versions if version != own), own)


def machine_chooser(settings: CiSettings, table: ProviderTable) -> Machines:
    """Return a function that chooses machines: the last runner of the file that fits, or usual."""

    def choose(block: Sequence[str], stage: Stage, capabilities: frozenset[str]) -> CiMachine:
        for runner in reversed(settings.runners):
            fits = not runner.stages or stage in runner.stages
            able = capabilities.issuperset(runner.capabilities)
            if fits and able and runner.pattern.matches(block):
                return CiMachine(runner.labels, runner.image, runner.prepare)
        platform = block[0]
        if platform not in table.runners:
            msg = f"{table.title} has no usual machine for {platform}"
            hint = f"name its labels in [[ci.runner]]; known are {listed(list(table.runners))}"
            raise PlanError(msg, hint=hint)
        return CiMachine(table.runners[platform], table.images.get(platform, ""))

    return choose
