"""The difference of two plans, as text."""

from collections.abc import Iterable

from torchyard.model.quantity import show_count
from torchyard.plan.diff import Cause, PackageChange, PlanDiff
from torchyard.terminal.tables import Lines, assembled, styled

_LISTED = 12
"""The most packages to list for a cause; others are counted."""


def diff_lines(diff: PlanDiff) -> Lines:
    """List changes, grouped by the line that caused them."""
    for title, sign, style, changes in (
        ("gone", "-", "red", diff.vanished),
        ("new", "+", "green", diff.appeared),
        ("to rebuild", "~", "yellow", diff.rebuilt),
        ("to test again", "?", "cyan", diff.retested),
    ):
        if changes:
            yield styled(f"{show_count(len(changes), 'package')} {title}", f"bold {style}")
            yield from _by_cause(changes, sign, style)
    yield styled(f"{show_count(diff.unchanged, 'package')} unchanged", "bold")


def _by_cause(changes: Iterable[PackageChange], sign: str, style: str) -> Lines:
    groups: dict[tuple[Cause, ...], list[PackageChange]] = {}
    for change in changes:
        groups.setdefault(change.causes, []).append(change)
    for causes, group in groups.items():
        for cause in causes:
            yield assembled(("  because ", "dim"), cause.what, (f" ({cause.origin})", "dim"))
        for change in group[:_LISTED]:
            yield assembled((f"    {sign} ", style), change.cell)
        if len(group) > _LISTED:
            yield styled(f"      and {len(group) - _LISTED:,} more (all with --json)", "dim")
        yield ""
