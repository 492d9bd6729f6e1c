"""`torchyard tool snapshot`: what the source stage runs."""

from pathlib import Path

import click
import msgspec

from torchyard.model.job_spec import JobSpec
from torchyard.run.source import take_snapshot


@click.command("snapshot")
@click.option("--spec", required=True, help="Spec of the job, which names the source.")
@click.option("--file", required=True, help="Configuration file that its paths are relative to.")
@click.option("--root", default="", help="Root whose apt gets source packages.")
@click.option("--to", required=True, help="Directory to fill.")
def command(spec: str, file: str, root: str, to: str) -> None:
    """Take a snapshot of a directory, a commit, an archive or a source package."""
    task = msgspec.json.decode(Path(spec).read_bytes(), type=JobSpec).task
    take_snapshot(task, file, Path(to), root)
