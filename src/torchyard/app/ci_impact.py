"""Find out which jobs of a plan a change of the repository affects."""

import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from torchyard.app.ci import CiWriter
from torchyard.ci.generate import fold_all
from torchyard.ci.narrow import wanted_parts
from torchyard.ci.provider import load_provider_table
from torchyard.ci.registry import find_provider
from torchyard.config.load import load_config
from torchyard.errors import SelectionError, TorchyardError, UsageError
from torchyard.host.git import export_tree, find_top, head_message
from torchyard.plan.build import make_plan
from torchyard.plan.graph import Job, Plan
from torchyard.plan.select import PlanSelection
from torchyard.reports.ci.document import CiImpactDocument, ci_impact_document
from torchyard.workspace.locations import absolute

_HERE = "the working tree"
_ASKED = re.compile(r"\[torchyard (?:skip|build (?P<globs>[^\]]+))\]")
"""What a commit's message can say about the jobs of a pull request: none, or some cells."""


def find_impact(file: str, span: str, *, subset: str | None = None) -> CiImpactDocument:
    """Compare the plans of two commits by their fingerprints.

    Args:
        file: The configuration, in a git repository.
        span: The commits, `BASE..HEAD`; without HEAD, the files as they are now.
        subset: A named part of the matrix.
    """
    base, head = _commits(span)
    if not base:
        raise _no_span(span)
    place = Path(absolute(file)).resolve()
    top = find_top(str(place.parent))
    inside = place.relative_to(top)
    with TemporaryDirectory(prefix="torchyard-impact-") as folder:
        old = _plan_at(base, top, inside, Path(folder, "base"), subset)
        if head:
            new = _plan_at(head, top, inside, Path(folder, "head"), subset)
        else:
            new = _plan_of(place, subset)
    return ci_impact_document(old, new, base=base, head=head or _HERE, subset=subset)


def select_affected(
    file: str, span: str, *, provider: str, pipeline: str, say: Callable[[str], object]
) -> str:
    """Return which jobs of a pipeline run after a change, as text for its provider.

    Args:
        file: The configuration, in a git repository.
        span: `BASE..`, the commit that the files are compared with. Without one, or if it can't be
            planned, all jobs run. With one, the newest commit's message may say what runs.
        provider: The CI provider.
        pipeline: The name of the pipeline.
        say: Is told why all jobs run.
    """
    base, head = _commits(span)
    if head:
        msg = f"`{span}`: a provider runs the files as they are now"
        raise UsageError(msg, hint=f"compare them with a commit: {base}..")
    writer = CiWriter.of(file, [provider])
    folded = fold_all(provider, writer.config, writer.plan, file=writer.file)
    found = next((pair for pair in folded if pair[0].name == pipeline), None)
    if found is None:
        msg = f"there is no pipeline `{pipeline}`"
        raise SelectionError(msg, hint=f"write [ci.pipeline.{pipeline}]")
    one, plan = found
    old = _base_plan(base, Path(absolute(file)).resolve(), one.settings.subset, say)
    affected = [job.number for job in plan.jobs if not _is_same(job, old)]
    asked = _ASKED.search(head_message(Path(absolute(file)).parent)) if base else None
    if asked is not None:
        say(f"as the commit's message says: {asked[0]}")
        chosen = PlanSelection(one.settings.subset, tuple((asked["globs"] or "").split()))
        keys = {job.key for job in make_plan(writer.config, chosen).jobs} if asked["globs"] else ()
        affected = [job.number for job in plan.jobs if job.key in keys]
    text = find_provider(provider).selection(one, wanted_parts(one, plan, affected))
    if text is None:
        msg = f"files of {load_provider_table(provider).title} run all jobs of a pipeline"
        raise UsageError(msg, hint="without --provider, the affected jobs are listed")
    return text


def _base_plan(
    base: str, place: Path, subset: str | None, say: Callable[[str], object]
) -> Plan | None:
    """Return the plan of a commit; None if there is none."""
    if not base:
        return None
    try:
        top = find_top(str(place.parent))
        with TemporaryDirectory(prefix="torchyard-impact-") as folder:
            return _plan_at(base, top, place.relative_to(top), Path(folder, "base"), subset)
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


def _plan_at(revision: str, top: Path, inside: Path, place: Path, subset: str | None) -> Plan:
    """Plan a commit, with all files as they were in it."""
    export_tree(revision, top, place)
    return _plan_of(place / inside, subset)


def _plan_of(file: Path, subset: str | None) -> Plan:
    return make_plan(load_config(str(file)), PlanSelection(subset))
