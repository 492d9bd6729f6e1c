"""Find out which jobs of a plan a change of the repository affects."""

from pathlib import Path
from tempfile import TemporaryDirectory

from torchyard.app.locations import absolute
from torchyard.config.load import load_config
from torchyard.errors import UsageError
from torchyard.host.git import export_tree, find_top
from torchyard.plan.build import make_plan
from torchyard.plan.graph import Plan
from torchyard.plan.select import PlanSelection
from torchyard.reports.ci.document import CiImpactDocument, ci_impact_document

_HERE = "the working tree"


def find_impact(file: str, span: str, *, subset: str | None = None) -> CiImpactDocument:
    """Compare the plans of two commits by their fingerprints.

    Args:
        file: The configuration, in a git repository.
        span: The commits, `BASE..HEAD`; without HEAD, the files as they are now.
        subset: A named part of the matrix.
    """
    base, dots, head = span.partition("..")
    if not base or not dots or head.startswith("."):
        msg = f"`{span}` is not written BASE..HEAD"
        raise UsageError(msg, hint="such as main..HEAD, or main.. for the files as they are now")
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


def _plan_at(revision: str, top: Path, inside: Path, place: Path, subset: str | None) -> Plan:
    """Plan a commit, with all files as they were in it."""
    export_tree(revision, top, place)
    return _plan_of(place / inside, subset)


def _plan_of(file: Path, subset: str | None) -> Plan:
    return make_plan(load_config(str(file)), PlanSelection(subset))
