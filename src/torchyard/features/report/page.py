"""A plan and its results as a self-contained page."""

from collections.abc import Mapping

from torchyard.features.check.report import CheckReport
from torchyard.features.deps.page import DEPS_FILTERS, deps_values
from torchyard.features.graph.page import graph_values
from torchyard.features.report.report import PlanReport
from torchyard.features.timings.page import TIMINGS_FILTERS, timings_values
from torchyard.model.quantity import show_duration, show_size
from torchyard.model.severity import Severity
from torchyard.reports.picture import PICTURE_FILTERS
from torchyard.reports.templates import Filters, render_template

_FILTERS: Filters = {
    **DEPS_FILTERS,
    **PICTURE_FILTERS,
    **TIMINGS_FILTERS,
    "size": show_size,
    "duration": show_duration,
}


def report_html(report: PlanReport) -> str:
    """Write the page."""
    columns, rows = report.grid()
    return render_template(
        "report.html",
        _FILTERS,
        report=report,
        columns=columns,
        rows=rows,
        timings=[timings_values(timings) for timings in report.timings],
        graphs=[graph_values(graph) for graph in report.graphs],
        drift=deps_values(report.drift) if report.drift else None,
        findings=_findings(report.checks),
    )


def _findings(checks: Mapping[str, CheckReport]) -> list[tuple[str, str, str, str, list[str]]]:
    """Return findings, the worst first: severity, rule, text, hint, and checks."""
    found: dict[tuple[Severity, str, str, str], list[str]] = {}
    for job, check in checks.items():
        for package in check.packages:
            for finding in package.findings:
                what = f"{finding.member}: {finding.what}" if finding.member else finding.what
                key = (finding.severity, finding.rule, what, finding.allowed or finding.hint)
                found.setdefault(key, []).append(job)
    order = list(Severity)
    rows = sorted(found.items(), key=lambda item: (order.index(item[0][0]), item[0][1]))
    return [(key[0].value, *key[1:], list(dict.fromkeys(jobs))) for key, jobs in rows]
