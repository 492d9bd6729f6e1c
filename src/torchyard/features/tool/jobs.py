"""Tools that need packages above `recipes`: for source jobs, and for roots, in JSON."""

from functools import partial
from pathlib import Path

import msgspec

from torchyard.compute.registry import platform_for
from torchyard.config.tables import load_tables
from torchyard.engines.admission import examine_in_root
from torchyard.model.job_spec import JobSpec
from torchyard.run.provision import equip_in_root
from torchyard.run.source import take_snapshot
from torchyard.terminal.console import write
from torchyard.toolchain.identity import SurveyRequest, identify
from torchyard.toolchain.root import answer_with


def survey_tool(request: str) -> None:
    """Print the identities of a toolchain."""
    asked = msgspec.json.decode(request, type=SurveyRequest)
    find = partial(
        identify,
        asked.toolchain,
        computes={name: platform_for(name) for name in asked.computes},
        variants=asked.variants,
        tables=load_tables(),
    )
    write(answer_with(lambda: find().parts))


def equip_tool(name: str) -> None:
    """Install a job's toolchain, and print its variables."""
    write(answer_with(partial(equip_in_root, name)))


def doctor_tool(request: str) -> None:
    """Inspect the root for a build, and print the findings."""
    write(answer_with(partial(examine_in_root, request)))


def snapshot_tool(*, spec: JobSpec, file: str, to: Path, root: str = "") -> None:
    """Take a snapshot of a directory, a commit, an archive or a source package.

    Paths of the source are relative to `file`; source packages come from `root`'s apt.
    """
    take_snapshot(spec.task, file, to, root)
