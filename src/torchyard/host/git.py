"""What we ask of git."""

from pathlib import Path

from torchyard.errors import HostError
from torchyard.host.process import capture


def file_at(revision: str, path: str) -> str:
    """Read a file as it was at a revision of the repository that holds it."""
    folder, name = Path(path).absolute().parent, Path(path).name
    try:
        return capture(["git", "show", f"{revision}:./{name}"], cwd=folder)
    except HostError as error:
        msg = f"`{revision}` is no file, and `{name}` can't be read at that git revision: {error}"
        hint = "name a file that exists, or a revision of the repository that holds the file"
        raise HostError(msg, hint=hint) from error
