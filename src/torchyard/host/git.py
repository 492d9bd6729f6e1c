"""What we ask of git."""

from pathlib import Path

from torchyard.errors import HostError
from torchyard.host.process import capture


def file_at(revision: str, path: str) -> str:
    """Read a file as it was at a revision; `REVISION:PATH` names another path in the repository."""
    folder, name = Path(path).absolute().parent, f"./{Path(path).name}"
    if ":" in revision:
        revision, _, name = revision.partition(":")
        folder = Path.cwd()
    try:
        return capture(["git", "show", "--end-of-options", f"{revision}:{name}"], cwd=folder)
    except HostError as error:
        msg = f"`{revision}` is no file, and git can't show {name} at that revision: {error}"
        hint = "name a file that exists, or a revision of the repository that holds the file"
        raise HostError(msg, hint=hint) from error
