"""Take the snapshot of a source: the result of a source job."""

from pathlib import Path
from tempfile import TemporaryDirectory

from torchyard.config.load import source_exclusions
from torchyard.host.patches import apply_patches
from torchyard.host.snapshot import check_out, copy_folder, unpack_archive
from torchyard.model.config import Source
from torchyard.model.job_spec import Task
from torchyard.toolchain.downloads import keep_downloads


def take_snapshot(task: Task, file: str, to: Path, root: str = "") -> None:
    """Fill a directory with a job's source: patched, and with its build's downloads.

    Paths are relative to the configuration file; the `root`'s apt fetches source packages.
    """
    source, base = task.source or Source(), Path(file).parent
    if source.path is not None:
        left_out, ignored = source_exclusions(source, file), source.include_ignored
        copy_folder(base / source.path, task.text("digest"), to, left_out, include_ignored=ignored)
    elif source.archive is not None:
        archive = source.archive if source.file is None else str(base / source.archive)
        unpack_archive(archive, task.text("sha256"), to)
    elif source.sdist is not None:
        from torchyard.host.network_settings import network_settings  # noqa: PLC0415 - slow
        from torchyard.index.simple.sdist import download_sdist, find_sdist  # noqa: PLC0415

        with TemporaryDirectory(dir=to.parent) as folder:
            found = find_sdist(source.sdist, network_settings().indexes)
            path = download_sdist(found, Path(folder))
            unpack_archive(str(path), task.text("sha256"), to)
    elif source.debian is not None:
        from torchyard.toolchain.debian_root import get_source  # noqa: PLC0415 - few have a root

        get_source(root, source.debian, to)
    else:
        revision = source.commit or source.rev or ""
        check_out(source.git or "", revision, to, submodules=source.submodules)
    keep_downloads(source.also, base, to)
    if series := task.words("series"):
        apply_patches(task.table("patches"), series, to)
