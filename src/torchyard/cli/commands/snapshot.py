"""`torchyard snapshot`: what the source stage runs."""

from pathlib import Path
from tempfile import TemporaryDirectory

import click
import msgspec

from torchyard.config.lock import build_lock_path
from torchyard.errors import UsageError
from torchyard.host.patches import apply_patches
from torchyard.host.snapshot import check_out, copy_folder, unpack_archive
from torchyard.model.job_spec import JobSpec, Task


@click.command("snapshot", hidden=True)
@click.option("--to", required=True, help="Directory to fill.")
@click.option("--path", help="Directory to copy.")
@click.option("--digest", default="", help="What the directory or archive must contain.")
@click.option("--leave-out", multiple=True, help="File that is no part of the source.")
@click.option("--include-ignored", is_flag=True, help="Take what git ignores, too.")
@click.option("--git", "url", help="Repository to check out from.")
@click.option("--rev", default="", help="Commit to check out.")
@click.option("--archive", help="Archive to unpack: a file or an address.")
@click.option("--sdist", help="Sdist of an index to unpack, as `name==version`.")
@click.option("--debian", help="Source package of Debian, as `name=version`.")
@click.option("--root", default="", help="Root whose apt gets it.")
@click.option("--also", help="Order whose downloads are fetched, too.")
@click.option("--base", default="", help="Directory that paths of downloads are relative to.")
@click.option("--patches", help="Order whose patches are applied.")
@click.option("--submodules/--no-submodules", default=True, help="Take submodules along.")
def command(
    *,
    to: str,
    path: str | None,
    digest: str,
    leave_out: tuple[str, ...],
    include_ignored: bool,
    url: str | None,
    rev: str,
    archive: str | None,
    sdist: str | None,
    debian: str | None,
    root: str,
    also: str | None,
    base: str,
    patches: str | None,
    submodules: bool,
) -> None:
    """Take a snapshot of a directory, a commit, an archive or a source package."""
    if path is not None:
        names = [*leave_out, *map(build_lock_path, leave_out)]
        copy_folder(Path(path), digest, Path(to), names, include_ignored=include_ignored)
    elif url is not None:
        check_out(url, rev, Path(to), submodules=submodules)
    elif archive is not None:
        unpack_archive(archive, digest, Path(to))
    elif sdist is not None:
        from torchyard.host.package_indexes import configured_indexes
        from torchyard.index.simple.sdist import download_sdist, find_sdist

        with TemporaryDirectory(dir=Path(to).parent) as folder:
            found = find_sdist(sdist, configured_indexes())
            unpack_archive(str(download_sdist(found, Path(folder))), digest, Path(to))
    elif debian is not None:
        from torchyard.toolchain.debian_root import get_source

        get_source(root, debian, Path(to))
    else:
        msg = "a snapshot of what?"
        raise UsageError(msg, hint="give --path, --git, --archive, --sdist or --debian")
    if also is not None:
        from torchyard.run.downloads import keep_downloads

        keep_downloads(_task(also).source, Path(base), Path(to))
    if patches is not None:
        task = _task(patches)
        apply_patches(task.table("patches"), task.words("series"), Path(to))


def _task(order: str) -> Task:
    return msgspec.json.decode(Path(order).read_bytes(), type=JobSpec).task
