"""Generate a provider's files from a config, folded to keep the provider's limits."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from torchyard.ci.fold import LEVELS, Folding, Machines, admit_blocks, fold_plan
from torchyard.ci.pipeline import CiMachine, Pipeline, file_words
from torchyard.ci.provider import CiProvider, Measure, ProviderTable, load_provider_table
from torchyard.ci.registry import find_provider
from torchyard.ci.yaml import CiFile, render
from torchyard.doctor.table import machine_table
from torchyard.errors import PlanError, SelectionError
from torchyard.host.files import dirname, join, list_data, normpath
from torchyard.model.ci import CiEvent, CiPipeline, CiRunner
from torchyard.model.config import ChannelConfig, Config
from torchyard.model.matrix import Needs
from torchyard.model.quantity import show_count
from torchyard.model.recipe import Stage
from torchyard.model.toolchain import REGISTRY
from torchyard.plan.graph import Plan
from torchyard.toolchain.registry import locked_digest
from torchyard.version import ON_PYPI, __version__

Planner = Callable[[str | None], Plan]
"""Returns the plan of a subset, or for None, of the whole matrix."""

Say = Callable[[str], object]


class _Folded(NamedTuple):
    """Pipelines that keep the limits of their provider, and the texts of their files."""

    pipelines: list[Pipeline]
    plans: list[Plan]
    texts: dict[str, str]


def generate_files(  # noqa: PLR0913 - whose files, of what, and how
    name: str,
    config: Config,
    planner: Planner,
    *,
    file: str,
    only: str | None = None,
    say: Say = str,
) -> dict[str, str]:
    """Return the text of each file that a provider needs, by its path in the repository.

    Args:
        name: The provider.
        config: The configuration; its `[ci]` says what runs when.
        planner: Plans a subset.
        file: The path of the configuration, from the top of the repository.
        only: Write only the pipelines of this subset.
        say: Called with each omitted part and the reason.
    """
    wanted = [p for p in ci_pipelines(config) if only is None or p.subset == only]
    if not wanted:
        msg = f"no pipeline builds the subset `{only}`"
        raise SelectionError(msg, hint=f'write [ci.pipeline.{only}] with subset = "{only}"')
    return _fold(name, planner, wanted, file, say).texts


def fold_all(
    name: str, config: Config, planner: Planner, *, file: str
) -> Iterator[tuple[Pipeline, Plan]]:
    """Yield all pipelines of a provider, folded as in its files, with their plans."""
    folded = _fold(name, planner, ci_pipelines(config), file)
    return zip(folded.pipelines, folded.plans, strict=True)


def _fold(
    name: str, planner: Planner, wanted: Sequence[CiPipeline], file: str, say: Say = str
) -> _Folded:
    """Fold pipelines as finely as the provider's limits allow, or raise PlanError."""
    provider, table = find_provider(name), load_provider_table(name)
    plans = [_admitted(pipeline, planner(pipeline.subset), table, say) for pipeline in wanted]
    beyond: list[Measure] = []
    for level in LEVELS:
        folded = [
            fold_pipeline(pipeline, plan, table, file=file, level=level)
            for pipeline, plan in zip(wanted, plans, strict=True)
        ]
        made = provider.files(folded, table)
        command = " ".join(["torchyard", "ci", "generate", *file_words(file)])
        texts = {written.path: render(written, source=file, command=command) for written in made}
        beyond = list(beyond_limits(provider, table, made, texts))
        if not beyond:
            for pipeline, asked in zip(folded, wanted, strict=True):
                if asked.channel and pipeline.settings.channel is None:
                    say(f"{table.title}, {pipeline.name}: publish is left out: {_SCATTERED}")
            return _Folded(folded, plans, texts)
    worst = beyond[0]
    allowed = table.limits[worst.limit]
    what = worst.limit.replace("_", " ")
    msg = f"{table.title} allows {allowed:,} {what}, and {worst.what} has {worst.value:,}"
    raise PlanError(msg, hint="let pipelines build smaller subsets: `subset` in [ci.pipeline.NAME]")


def _admitted(pipeline: CiPipeline, plan: Plan, table: ProviderTable, say: Say) -> Plan:
    """Return the part of a plan that the provider's machines can build; report the rest."""
    kept, refused = admit_blocks(plan, machine_chooser(plan.config, table))
    reasons = {block: error.diagnostics[0] for block, error in refused.items()}
    if not any(kept.cells()):
        first = next(iter(reasons.values()))
        msg = f"{table.title} can run nothing of pipeline `{pipeline.name}`: {first.what}"
        raise PlanError(msg, hint=first.hint)
    counts = Counter(reasons[cell[:3]] for cell in plan.cells() if cell[:3] in reasons)
    for reason, count in counts.items():
        left_out = f"{pipeline.name}: {show_count(count, 'package')} left out"
        say(f"{table.title}, {left_out}: {reason.what}; {reason.hint}")
    return kept


def beyond_limits(
    provider: CiProvider, table: ProviderTable, made: Sequence[CiFile], texts: Mapping[str, str]
) -> Iterator[Measure]:
    """Yield every measure of the files that exceeds the provider's limit."""
    for written in made:
        size = Measure("file_bytes", len(texts[written.path].encode()), written.path)
        hidden = (Measure(limit, value, written.path) for limit, value in written.measured.items())
        for measure in (size, *hidden, *provider.measures(written.document)):
            if measure.value > table.limits.get(measure.limit, measure.value):
                yield measure


def ci_pipelines(config: Config) -> list[CiPipeline]:
    """Return a file's pipelines; by default, one for pull requests and one for each channel."""
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


def fold_pipeline(
    pipeline: CiPipeline, plan: Plan, table: ProviderTable, *, file: str, level: int
) -> Pipeline:
    """Return the jobs of one pipeline for one provider."""
    config, settings = plan.config, plan.config.ci
    longest = table.limits["job_minutes"]
    minutes = settings.time_limit // 60 if settings.time_limit else longest
    choose = machine_chooser(config, table)
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
    first = next(job.scope[:3] for job in plan.jobs if job.scope)
    publisher = choose(first, Stage.PUBLISH, Needs())
    if not _finds_all(plan, [*(job.machine for job in jobs), publisher]):
        pipeline = msgspec.structs.replace(pipeline, channel=None)
    return Pipeline(
        settings=pipeline,
        file=file,
        install=_install(plan, table),
        pythons=_pythons(plan, settings.python or table.python, table),
        jobs=tuple(jobs),
        publisher=publisher,
        carried=carried,
        channel_folder=_channel_folder(
            config.channels.get(pipeline.channel or ""),
            file,
            is_hosted=any((machine.label,) == publisher.labels for machine in table.machines),
        ),
        is_partial=plan.partial,
        minutes=minutes,
        variant=config.project.recipe.variant.value,
        pins=settings.actions,
    )


def _pythons(plan: Plan, own: str, table: ProviderTable) -> tuple[str, ...]:
    """Return the versions of the target Pythons, and last, of the one that runs torchyard.

    An image brings the target Pythons.
    """
    if _inside(plan.config, table):
        return (own,)
    known = plan.config.tables.pythons
    rows = [known[name] for name in dict.fromkeys(c.python for c in plan.cells()) if name in known]
    versions = [f"{row.version}t" if row.free_threaded else row.version for row in rows]
    return (*(version for version in versions if version != own), own)


def _finds_all(plan: Plan, machines: Sequence[CiMachine]) -> bool:
    """Return whether a single machine has all compilers, and so finds all built packages."""
    kinds = {cell.platform for cell in plan.cells()}, {machine.image for machine in machines}
    return plan.config.toolchain is None or all(len(kind) == 1 for kind in kinds)


_SCATTERED = (
    "compilers are part of fingerprints, so no machine finds the packages of several platforms or "
    "images; run `torchyard publish --partial` on one of each"
)


def _install(plan: Plan, table: ProviderTable) -> str:
    """Return the command that installs torchyard with the extras that cells need."""
    given = plan.config.ci.install
    if not given and not ON_PYPI:
        msg = f"torchyard {__version__} is not on PyPI: jobs can't install it"
        hint = "say how in [ci], such as install = \"python -m pip install './torchyard{extras}'\""
        raise PlanError(msg, hint=hint)
    tables = plan.config.tables
    kinds = {tables.packages[cell.package].format for cell in plan.cells()}
    extras = ",".join(sorted(kind for kind in kinds if tables.formats[kind].modules))
    text = (given or table.install).replace("{version}", __version__)
    return text.replace("{extras}", f"[{extras}]" if extras else "")


def _channel_folder(channel: ChannelConfig | None, file: str, *, is_hosted: bool) -> str:
    """Return the repository's directory to publish to, or "" for any other channel.

    Files that a hosted machine writes elsewhere are lost with the machine.
    """
    if channel is None or ("://" in channel.url and not channel.url.startswith("file:")):
        return ""
    folder = normpath(join(dirname(file), channel.url))
    if not folder.startswith(("..", "/", "file:")):
        return folder
    if is_hosted:
        msg = f"channel `{channel.name}` is `{channel.url}`, which is lost with a hosted machine"
        hint = (
            "name a directory of the repository, an address such as s3://…, or your own machine: "
        )
        raise PlanError(msg, hint=f'{hint}[[ci.runner]] labels = "…", stage = "publish"')
    return ""


def machine_chooser(config: Config, table: ProviderTable) -> Machines:
    """Return a function that chooses machines: the file's last runner that fits.

    Otherwise, it is the provider's smallest machine that can hold the job. The capacity of the
    file's machines is only known if they are the provider's.
    """
    packages = machine_table().managers["apt-get"].packages
    inside = _inside(config, table)
    names = " ".join(packages[name] for name in _needed(config))
    usual = CiRunner(
        labels=(),
        image=table.image.replace("{python}", config.ci.python or table.python),
        prepare=tuple(command.replace("{packages}", names) for command in table.prepare),
    )

    def choose(block: Sequence[str], stage: Stage, needs: Needs) -> CiMachine:
        platform = block[0]
        if not config.tables.platforms[platform].built:
            msg = f"torchyard can't build on {platform}"
            raise PlanError(msg, hint="it plans, checks and publishes such packages")
        own = (r for r in reversed(config.ci.runners) if _suits(r, block, stage, needs))
        runner = next(own, CiRunner(labels=()))
        if inside and not runner.image:
            prepare = (*inside.prepare, *runner.prepare)
            runner = msgspec.structs.replace(runner, image=inside.image, prepare=prepare)
        hosted = [machine for machine in table.machines if machine.platform == platform]
        if runner.labels:
            hosted = [machine for machine in hosted if (machine.label,) == runner.labels]
        if runner.labels and not hosted:
            return CiMachine(runner.labels, runner.image, runner.prepare)
        short: str | None = f"a machine for {platform}, and {table.title} has none"
        for machine in hosted:
            short = machine.shortage(needs)
            if short is None and not runner.image:
                short = _missing_toolkit(config, block[1], stage)
            if short is None:
                prepare = () if runner.image else usual.prepare
                image = runner.image or usual.image
                return CiMachine((machine.label,), image, (*prepare, *runner.prepare))
        msg = f"stage {stage} needs {short}"
        hint = f'name another machine: [[ci.runner]] labels = "…", stage = "{stage}"'
        raise PlanError(msg, hint=hint)

    return choose


def _inside(config: Config, table: ProviderTable) -> CiRunner | None:
    """Return the container that jobs run in, instead of using its image as their root."""
    image = _root_image(config)
    if not (image and table.inside):
        return None
    locked_digest(image)
    tag = f"cp{(config.ci.python or table.python).replace('.', '')}"
    given = {"{image}": image, "{folder}": f"/opt/python/{tag}-{tag}/bin"}
    prepare = (re.sub(r"\{\w+\}", lambda found: given[found[0]], line) for line in table.inside)
    return CiRunner(labels=(), image=image, prepare=tuple(prepare))


def _root_image(config: Config) -> str:
    root = config.toolchain.root if config.toolchain else None
    return root.removeprefix(REGISTRY) if root and root.startswith(REGISTRY) else ""


def _needed(config: Config) -> Iterator[str]:
    """Yield the programs that a machine needs."""
    yield from ("compiler", "bubblewrap")
    if _root_image(config):
        yield "skopeo"


def _missing_toolkit(config: Config, name: str, stage: Stage) -> str | None:
    """Return the toolkit that a provider's machine lacks for a compute platform, or None."""
    recipe, compute = config.project.recipe, config.tables.compute[name]
    has_core = Stage.CORE in recipe.stages
    if recipe.compiling in config.steps or stage is not (Stage.CORE if has_core else Stage.PACKAGE):
        return None
    is_pinned = f"{compute.platform}-{compute.version}.txt" in list_data("pins")
    if not compute.is_gpu or (is_pinned and not has_core):  # a core needs more than compilers
        return None
    return f"the toolkit of {name}, and hosted machines have none"


def _suits(runner: CiRunner, block: Sequence[str], stage: Stage, needs: Needs) -> bool:
    """Return whether a runner of the file accepts such jobs."""
    able = {*needs.capabilities}.issuperset(runner.capabilities)
    return able and stage in (runner.stages or (stage,)) and runner.pattern.matches(block)
