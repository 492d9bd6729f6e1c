"""Lock the build environments of an extension, after a change of its file."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from torchyard.config.document import Document
from torchyard.config.load import load_config, read_document
from torchyard.config.lock import build_lock_path, conda_lock_folder
from torchyard.errors import UsageError
from torchyard.host.files import write_text
from torchyard.host.network_settings import network_settings
from torchyard.index.simple.sdist import find_sdist
from torchyard.model.config import Config
from torchyard.model.tables import TORCH_PREFIX
from torchyard.workspace.lock import lock_environments
from torchyard.workspace.progress import ignore_line


def lock_wheels(
    file: str = "torchyard.toml",
    *,
    upgrade: bool = False,
    torch: Sequence[str] = (),
    python: Sequence[str] = (),
    version: str | None = None,
    on_line: Callable[[str], object] = ignore_line,
) -> None:
    """Write the lock of a file; if wheels are not found, the file is not changed.

    Args:
        file: The configuration.
        upgrade: Also find newer wheels for locked environments.
        torch: Additional releases to compile an extension against, such as 2.15.
        python: Additional Pythons to build for, such as cp313.
        version: The version of the project to build from now on; empty for the newest sdist.
        on_line: Called with each locked environment.
    """
    with updated_file(file, torch=torch, python=python, version=version):
        lock = lock_environments(file, upgrade=upgrade, say=on_line)
    images = f" and {len(lock.images)} image" if lock.images else ""
    if lock.conda:
        on_line(f"{conda_lock_folder(file)} has {len(lock.conda)} locks of conda environments")
    else:
        on_line(f"wrote {build_lock_path(file)}, with {len(lock.files)} wheels{images}")


@contextmanager
def updated_file(
    file: str, *, torch: Sequence[str] = (), python: Sequence[str] = (), version: str | None = None
) -> Iterator[None]:
    """Change a file, and undo that if the block fails; keep other lines and comments."""
    old = new = read_document(file)
    for name in torch:
        new = new.with_item(("matrix", "torch"), f"{TORCH_PREFIX}{name}")
    for name in python:
        new = new.with_item(("matrix", "python"), name)
    if version is not None:
        new = _at_version(new, load_config(file), version)
    try:
        if new is not old:
            write_text(file, new.text, replace=True)
        yield
    except BaseException:
        if new is not old:
            write_text(file, old.text, replace=True)
        raise


def _at_version(document: Document, config: Config, version: str) -> Document:
    """Return a document with another version of the project and its source."""
    source, old = config.source, config.project.version
    if source.sdist:
        name = source.sdist.partition("==")[0]
        found = find_sdist(f"{name}=={version}" if version else name, network_settings().indexes)
        version = found.version
        document = document.with_string(("source", "sdist"), f"{name}=={version}")
        document = document.with_string(("source", "sha256"), found.sha256)
    elif version and source.rev and old in source.rev and not source.commit:
        document = document.with_string(("source", "rev"), source.rev.replace(old, version))
    elif not version or source.path is None:
        msg = "[source] does not say where the source of that version is"
        raise UsageError(msg, hint="change [source] and `version` of [project] by hand")
    return document.with_string(("project", "version"), version)
