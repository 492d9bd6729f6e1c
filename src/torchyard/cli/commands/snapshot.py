"""`torchyard snapshot`: what the source stage runs."""

from pathlib import Path

import click
import msgspec

from torchyard.model.job_spec import JobSpec
from torchyard.run.source import take_snapshot


@click.command("snapshot", hidden=True)
@click.option("--order", required=True, help="Order of the job, which says what the source is.")
@click.option("--file", required=True, help="Configuration file that its paths are relative to.")
@click.option("--root", default="", help="Root whose apt gets source packages.")
@click.option("--to", required=True, help="Directory to fill.")
def command(order: str, file: str, root: str, to: str) -> None:
    """Take a snapshot of a directory, a commit, an archive or a source package."""
    task = msgspec.json.decode(Path(order).read_bytes(), type=JobSpec).task
    take_snapshot(task, file, Path(to), root)
