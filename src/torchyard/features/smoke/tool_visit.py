"""`torchyard tool visit`: the step of a smoke job for a published package."""

from pathlib import Path

import msgspec

from torchyard.features.smoke.tool import try_out
from torchyard.model.job_spec import JobSpec
from torchyard.recipes.proof import PUBLISHED
from torchyard.smoke.package_under_test import PackageUnderTest


def visit_tool(*, spec: JobSpec, channel: tuple[str, ...] = (), to: Path) -> None:
    """Test a published package, installed from its public address, and write a report."""
    published = msgspec.convert(spec.task.table(PUBLISHED), PackageUnderTest)
    try_out(spec.task, channel, [published], (), to)
