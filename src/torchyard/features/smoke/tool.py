"""`torchyard tool smoke`: the step of a smoke job."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from torchyard.features.smoke.report import SmokeReport, smoke_error, smoke_text
from torchyard.host.signals import exit_on_sigterm
from torchyard.host.untrusted_tree import lay_out_files
from torchyard.model.job_spec import JobSpec, Task
from torchyard.package.delivered import delivered_packages
from torchyard.recipes.packing import pack_beside
from torchyard.smoke.package_under_test import PackageUnderTest, read_package_under_test
from torchyard.smoke.request import smoke_request
from torchyard.smoke.smoke import smoke_all
from torchyard.terminal.console import say, show
from torchyard.terminal.json_output import encode
from torchyard.workspace.clock import current_date


def smoke_tool(
    folder: Path, *, spec: Path, inputs: Path, channel: tuple[str, ...] = (), to: Path
) -> None:
    """Test the package of a job, and write a report; make companion conda packages first."""
    made = pack_beside(spec, inputs, Path("packing").absolute(), Path("beside").absolute())
    task = msgspec.json.decode(spec.read_bytes(), type=JobSpec).task
    packages = map(read_package_under_test, delivered_packages(folder))
    beside = map(read_package_under_test, made)
    try_out(task, channel, list(packages), list(beside), to)


def try_out(
    task: Task,
    channels: Sequence[str],
    packages: Sequence[PackageUnderTest],
    beside: Sequence[PackageUnderTest],
    to: Path,
) -> None:
    """Test packages with the settings of a job, and write a report."""
    given = task.table("tests")  # in one folder, whose name is part of theirs
    tests = lay_out_files(given, Path("tests")) / min(given).partition("/")[0] if given else None
    request = smoke_request(
        current_date(),
        level=task.text("level"),
        tests=tests,
        channels=channels,
        indexes=task.words("indexes"),
    )
    exit_on_sigterm()
    with TemporaryDirectory(prefix="torchyard-smoke-") as scratch:
        smoked = smoke_all(packages, request, beside, folder=Path(scratch), tell=say)
        say("removing the environments")
    report = SmokeReport.of(smoked, request.level)
    (to / "smoke.json").write_bytes(encode(report))
    show(*smoke_text(report))
    if error := smoke_error(report, every=True):
        raise error
