"""A worker's credentials for its store, and for publishing."""

import os
import tomllib
from pathlib import Path

import msgspec

from torchyard.config.credentials import load_credentials, take_credentials
from torchyard.errors import HostError
from torchyard.host.secrets import give, taken

_OTHERS = 0o077


def take_worker_credentials(path: Path | None) -> dict[str, str]:
    """Return the secrets of a file and of the environment, and remove them from the latter."""
    take_credentials()
    if path is not None:
        credentials = load_credentials()
        found = _read(path)
        give({name: value for name, value in found.items() if credentials[name].secret})
        os.environ |= {name: value for name, value in found.items() if not credentials[name].secret}
    return dict(taken())


def _read(path: Path) -> dict[str, str]:
    """Read a file with a line for each variable: `AWS_REGION = "eu-central-1"`."""
    try:
        is_open = path.stat().st_mode & _OTHERS
        found = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), dict[str, str])
    except (OSError, ValueError) as error:  # the text is not shown: it contains secrets
        msg = f"`{path}` could not be read as credentials: {type(error).__name__}"
        hint = 'write a line for each variable: AWS_ACCESS_KEY_ID = "…"'
        raise HostError(msg, hint=hint) from None
    if is_open:
        msg = f"`{path}` contains credentials, and other users can read it"
        raise HostError(msg, hint=f"chmod 600 {path}")
    unknown = sorted(found.keys() - load_credentials().keys())
    if unknown:
        msg = f"`{path}`: unknown variables: {', '.join(unknown)}"
        raise HostError(msg, hint=f"known are {', '.join(load_credentials())}")
    return found
