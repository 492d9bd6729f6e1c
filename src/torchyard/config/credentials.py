"""The table of variables that say who publishes; few commands need it, and load it."""

import os
from collections.abc import Mapping
from functools import cache

from torchyard.config.tables import parse_data
from torchyard.host import secrets
from torchyard.host.files import read_data
from torchyard.model.values import Value


class Credential(Value, kw_only=True):
    """A variable. A secret one is taken out of the environment, and never shown."""

    secret: bool


@cache
def load_credentials() -> Mapping[str, Credential]:
    return parse_data("credentials", read_data("credentials.toml"), Credential)


def take_credentials() -> None:
    """From now on, no child inherits a secret, nobody sees one in `/proc`, and none is told."""
    secrets.take(_secret_names())


def without_secrets(text: str) -> str:
    """A text to be told, also by a command that leaves the environment as it is."""
    return secrets.redact(text, [os.environ[n] for n in _secret_names() if n in os.environ])


def _secret_names() -> list[str]:
    return [name for name, known in load_credentials().items() if known.secret]


def credentials() -> dict[str, str]:
    """What publishing needs of the caller's environment, secrets and all."""
    found = {**secrets.taken(), **os.environ}
    return {name: found[name] for name in load_credentials() if name in found}
