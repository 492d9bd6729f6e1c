"""`torchyard tool check`: the step of a check job."""

from pathlib import Path

from torchyard.checks.checked import findings_error
from torchyard.features.check.report import check_text
from torchyard.features.check.use_case import check_packages
from torchyard.host.untrusted_tree import lay_out_files
from torchyard.model.job_spec import JobSpec
from torchyard.package.delivered import delivered_packages
from torchyard.terminal.console import show
from torchyard.terminal.json_output import encode


def check_tool(folder: Path, *, spec: JobSpec, to: Path) -> None:
    """Check the package of a job, and write its reports as JSON and as HTML."""
    given = spec.task.table("policy")
    policy = spec.task.text("policy")
    if given:
        policy = str(lay_out_files(given, Path("policy").absolute()) / list(given)[-1])
    packages = delivered_packages(folder)
    report = check_packages(packages, policy=policy, html=to / "check.html", spec=spec)
    (to / "check.json").write_bytes(encode(report))
    show(*check_text(report))
    if error := findings_error(report.packages):
        raise error
