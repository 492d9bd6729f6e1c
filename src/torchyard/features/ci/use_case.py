"""Write and compare the files of CI providers; find what a change affects, and new releases."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from torchyard.ci.generate import fold_all
from torchyard.ci.narrow import wanted_parts
from torchyard.ci.provider import load_provider_table
from torchyard.ci.registry import find_provider
from torchyard.config.document import Document
from torchyard.config.load import config_of, load_config, read_document
from torchyard.config.lock import build_lock_path
from torchyard.config.positions import locate
from torchyard.config.tables import dump, load_tables, toml_value
from torchyard.errors import ConfigError, SelectionError, TorchyardError, UsageError
from torchyard.features.ci.report import (
    CiFilesReport,
    CiImpactReport,
    CiJobsReport,
    CiRefreshReport,
    StageImpact,
)
from torchyard.host.files import absolute, exists, write_text
from torchyard.host.git import export_tree, find_top, head_message
from torchyard.host.git_fetch import newest_tag
from torchyard.model.config import Config, own_release
from torchyard.model.recipe import Dimension
from torchyard.model.tables import TORCH_PREFIX
from torchyard.model.version import version_numbers
from torchyard.plan.build import make_plan
from torchyard.plan.diff import diff_plans
from torchyard.plan.graph import Job, Plan
from torchyard.plan.select import PlanSelection
from torchyard.workspace.ci_files import CiWriter
from torchyard.workspace.locations import open_store
from torchyard.workspace.lock import lock_environments
from torchyard.workspace.progress import Meter, ignore_line, no_meter
from torchyard.workspace.reusable import local_store, reusable_jobs
from torchyard.workspace.toolchain_id import with_toolchain_id
from torchyard.workspace.torch_releases import TorchRange, find_releases

_HERE = "the working tree"
_ASKED = re.compile(r"\[torchyard (?:skip|build (?P<globs>[^\]]+))\]")
"""A marker in a commit's message that limits a pull request to no jobs, or to cells."""

_MACHINE = "x86_64"


def write_ci_files(
    providers: Sequence[str] = (),
    *,
    file: str = "torchyard.toml",
    changes: Sequence[str] = (),
    subset: str | None = None,
    force: bool = False,
    on_line: Callable[[str], object] = ignore_line,
) -> CiFilesReport:
    """Write outdated files of CI providers, and remove leftovers.

    Args:
        providers: The providers; by default those of [ci], or with files in the repository.
        file: The configuration.
        changes: Changes to it, each as `KEY=VALUE`.
        subset: Only the pipelines that build this part of the matrix.
        force: Overwrite edits, and files that torchyard did not write.
        on_line: Called with packages that no machine can build, and reasons.
    """
    writer = CiWriter.of(file, providers, changes)
    files = writer.write(subset, force=force, say=lambda text: on_line(f"warning: {text}"))
    return CiFilesReport(files=files)


def compare_ci_files(
    providers: Sequence[str] = (), *, file: str = "torchyard.toml"
) -> CiFilesReport:
    """Compare the files of CI providers with the generated ones."""
    return CiFilesReport(files=CiWriter.of(file, providers).compare())


def explain_ci_job(
    job: str, providers: Sequence[str] = (), *, file: str = "torchyard.toml"
) -> CiJobsReport:
    """Return where jobs of the plan run, or what a provider's job runs."""
    return CiJobsReport(jobs=CiWriter.of(file, providers).explain(job))


def newest_pins(host: str | None = None) -> str:
    """Return [ci.actions] with the commit of the newest release of each action, and its tag.

    Args:
        host: The address of the actions' repositories, instead of the usual one.
    """
    provider = load_provider_table("github")
    pins: dict[str, str] = {}
    for action, pin in provider.actions.items():
        found = newest_tag(f"{host or provider.action_host}/{action}") or (pin.tag, pin.commit)
        pins[action] = f"{found[1]} # {found[0]}"
    return dump({"actions": pins}, "", "ci")


def find_impact(
    span: str,
    *,
    file: str = "torchyard.toml",
    subset: str | None = None,
    provider: str | None = None,
    pipeline: str | None = None,
    output: str | None = None,
    store: str | None = None,
    on_line: Callable[[str], object] = ignore_line,
) -> CiImpactReport:
    """Compare the plans of two commits by their fingerprints.

    Args:
        span: The commits, `BASE..HEAD`; without HEAD, the files as they are now. For a provider,
            `BASE..`: all jobs run without BASE, or if it can't be planned.
        file: The configuration, in a git repository.
        subset: A named part of the matrix.
        provider: The CI provider that runs only affected jobs.
        pipeline: The name of its pipeline; the newest commit's message may limit it.
        output: The file for the provider's text.
        store: The store with earlier results, instead of the file's directory: jobs that would read
            nothing that has changed need not run.
        on_line: Called with the reason if all jobs run.
    """
    base, head = _commits(span)
    path = Path(absolute(file)).resolve()
    if provider is not None and pipeline is not None:
        if head:
            msg = f"`{span}`: a provider runs the files as they are now"
            raise UsageError(msg, hint=f"compare them with a commit: {base}..")
        report = _provider_impact(CiWriter.of(file, [provider]), base, pipeline, on_line)
        if output is not None:
            Path(output).parent.mkdir(parents=True, exist_ok=True)
            write_text(output, report.selection or "", replace=True)
        return report
    if provider or pipeline:
        msg = "--provider and --pipeline go together"
        raise UsageError(msg)
    if not base:
        raise _no_span(span)
    top = find_top(str(path.parent))
    inside = path.relative_to(top)
    with TemporaryDirectory(prefix="torchyard-impact-") as folder:
        old = _plan_at(base, top, inside, Path(folder, "base"), subset)
        if head:
            new = _plan_at(head, top, inside, Path(folder, "head"), subset)
            reusable = _reusable(Path(folder, "head") / inside, file, subset, store)
        else:
            new, reusable = _plan_of(path, subset), _reusable(path, file, subset, store)
    changed = [job for job in new.jobs if not _is_same(job, old)]
    affected = [job for job in changed if job.identifier not in reusable]
    kept = {job.key for job in new.jobs}
    counts = Counter(job.stage for job in affected)
    return CiImpactReport(
        base=base,
        head=head or _HERE,
        subset=subset,
        stages={
            stage.value: StageImpact(affected=counts[stage], jobs=total)
            for stage, total in new.stage_counts().items()
        },
        affected=[job.identifier for job in affected],
        vanished=[job.identifier for job in old.jobs if job.key not in kept],
        reused={
            job.identifier: reusable[job.identifier]
            for job in changed
            if job.identifier in reusable
        },
    )


def _reusable(planned: Path, file: str, subset: str | None, url: str | None) -> dict[str, str]:
    """Return the jobs of a planned file that need not run, each with the reason, by a store."""
    config = load_config(str(planned))
    store = open_store(url, file, make=False) if url else local_store(file, config)
    if store is None:
        return {}
    plan = make_plan(with_toolchain_id(config, file), PlanSelection(subset))
    return reusable_jobs(plan, store, str(planned))


def _provider_impact(
    writer: CiWriter, base: str, pipeline: str, say: Callable[[str], object]
) -> CiImpactReport:
    """Return the jobs of a pipeline that run after a change, with the text for its provider."""
    (provider,), path = writer.providers, writer.top / writer.file
    folded = fold_all(provider, writer.config, writer.plan, file=writer.file)
    found = next((pair for pair in folded if pair[0].name == pipeline), None)
    if found is None:
        msg = f"there is no pipeline `{pipeline}`"
        raise SelectionError(msg, hint=f"write [ci.pipeline.{pipeline}]")
    target, plan = found
    old = _base_plan(base, path, target.settings.subset, say)
    affected = [job.number for job in plan.jobs if not _is_same(job, old)]
    asked = _ASKED.search(head_message(path.parent)) if base else None
    if asked is not None:
        say(f"as the commit's message says: {asked[0]}")
        chosen = PlanSelection(target.settings.subset, tuple((asked["globs"] or "").split()))
        keys = {job.key for job in make_plan(writer.config, chosen).jobs} if asked["globs"] else ()
        affected = [job.number for job in plan.jobs if job.key in keys]
    text = find_provider(provider).selection(target, wanted_parts(target, plan, affected))
    if text is None:
        msg = f"files of {load_provider_table(provider).title} run all jobs of a pipeline"
        raise UsageError(msg, hint="without --provider, the affected jobs are listed")
    return CiImpactReport(
        base=base,
        head=_HERE,
        subset=target.settings.subset,
        stages={},
        affected=[plan.jobs[number].identifier for number in affected],
        vanished=[],
        selection=text,
    )


def _base_plan(
    base: str, path: Path, subset: str | None, say: Callable[[str], object]
) -> Plan | None:
    """Return the plan of a commit, or None if it has none."""
    if not base:
        return None
    try:
        top = find_top(str(path.parent))
        with TemporaryDirectory(prefix="torchyard-impact-") as folder:
            return _plan_at(base, top, path.relative_to(top), Path(folder, "base"), subset)
    except TorchyardError as error:
        say(f"all jobs run: {base} can't be planned: {error}")
        return None


def _is_same(job: Job, old: Plan | None) -> bool:
    return old is not None and old.fingerprint(*job.key) == job.fingerprint


def _commits(span: str) -> tuple[str, str]:
    """Return both ends of a span; either may be empty."""
    base, dots, head = span.partition("..")
    if not dots or head.startswith("."):
        raise _no_span(span)
    return base, head


def _no_span(span: str) -> UsageError:
    hint = "such as main..HEAD, or main.. for the files as they are now"
    return UsageError(f"`{span}` is not written BASE..HEAD", hint=hint)


def _plan_at(revision: str, top: Path, inside: Path, path: Path, subset: str | None) -> Plan:
    """Plan a commit with all its files."""
    export_tree(revision, top, path)
    return _plan_of(path / inside, subset)


def _plan_of(file: Path, subset: str | None) -> Plan:
    return make_plan(load_config(str(file)), PlanSelection(subset))


def refresh_matrix(
    file: str = "torchyard.toml",
    *,
    write: bool = False,
    meter: Meter = no_meter,
    on_line: Callable[[str], object] = ignore_line,
) -> CiRefreshReport:
    """Ask the index for the newest torch releases, and return the matrix by the file's rule.

    Args:
        file: The configuration, whose `[ci.refresh]` is the rule.
        write: Edit the file, and lock new environments.
        meter: Shows progress.
        on_line: Called with each locked environment.
    """
    document = read_document(file)
    config = config_of(file, document)
    wanted = _wanted(config, meter)
    changes = {key: new for key, new in wanted.items() if _listed(document, key) != new}
    text = _edited(document, changes)
    known = set(load_tables().releases) | set(config.lock.releases)
    torches = wanted.get(Dimension.TORCH.value, ())
    is_known = all(torch.removeprefix(TORCH_PREFIX) in known for torch in torches)
    if write and changes:
        write_text(file, text, replace=True)
        if not is_known or exists(build_lock_path(file)):
            lock_environments(file, say=on_line)
        is_known = True
    if not is_known:
        return CiRefreshReport(changes=changes, diff=None)
    after = load_config(file) if write else config_of(file, Document(document.name, text))
    diff = diff_plans(make_plan(config), make_plan(after))
    return CiRefreshReport(changes=changes, diff=diff)


def _wanted(config: Config, meter: Meter) -> dict[str, tuple[str, ...]]:
    """Return the values of dimensions by the file's rule."""
    rule = config.ci.refresh
    if not rule.torch and not rule.python:
        msg = "the file has no rule for how many releases to build for"
        hint = "write [ci.refresh] with torch = 3, for the newest three releases"
        raise ConfigError(msg, hint=hint)
    if rule.torch and not config.project.recipe.is_extension:
        msg = f"recipe `{config.project.recipe.name}` is not built against torch releases"
        raise ConfigError(msg, hint="remove `torch` from [ci.refresh]")
    python = config.tables.pythons[_listed_pythons(config)[0]].version
    found = find_releases(TorchRange(), python, _MACHINE, max(rule.torch, 1), meter)
    wanted: dict[str, tuple[str, ...]] = {}
    if rule.torch:
        minors = [own_release(wheel.version) for wheel in found[: rule.torch]]
        ordered = sorted(dict.fromkeys(minors), key=version_numbers)
        wanted[Dimension.TORCH.value] = tuple(f"{TORCH_PREFIX}{minor}" for minor in ordered)
    if rule.python:
        served = _pythons_of(found[0].version, python, config)
        wanted[Dimension.PYTHON.value] = tuple(served[-rule.python :])
    return wanted


def _listed_pythons(config: Config) -> Sequence[str]:
    return config.matrix.values[-2]


def _pythons_of(version: str, python: str, config: Config) -> list[str]:
    """Return the Pythons of a torch release's wheels, without free-threaded ones."""
    from torchyard.package.wheel.name import WheelName
    from torchyard.toolchain.index_wheels import release_wheels

    tags = {WheelName.parse(w.file).abi for w in release_wheels(f"torch=={version}", python)}
    return [
        name
        for name, row in config.tables.pythons.items()
        if name in tags and not row.free_threaded
    ]


def _listed(document: Document, dimension: str) -> tuple[str, ...]:
    values = document.raw["matrix"].get(dimension)
    if values is None:
        msg = f"[matrix] does not list `{dimension}` itself, so it can't be edited"
        raise ConfigError(msg, hint="a couple sets it: remove it from [ci.refresh]")
    return tuple(values)


def _edited(document: Document, values: dict[str, tuple[str, ...]]) -> str:
    """Return the text of a document with other lists in [matrix], otherwise unchanged."""
    text = document.text
    positions = locate(text)
    spans = {positions["matrix", dimension].value: new for dimension, new in values.items()}
    for (start, end), new in sorted(spans.items(), reverse=True):
        text = f"{text[:start]}{toml_value(new)}{text[end:]}"
    return text
