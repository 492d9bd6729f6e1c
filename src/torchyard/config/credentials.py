"""Environment variables with credentials for publishing; loaded only by commands that need them."""

import os
from collections.abc import Mapping
from functools import cache

from torchyard.config.tables import parse_data
from torchyard.host import secrets
from torchyard.host.files import read_data
from torchyard.model.values import Value


class Credential(Value, kw_only=True):
    """A variable. Secrets are removed from the environment, and redacted in all output."""

    secret: bool


@cache
def load_credentials() -> Mapping[str, Credential]:
    return parse_data("credentials", read_data("credentials.toml"), Credential)


def take_credentials() -> None:
    """Remove secrets from the environment and `/proc`; no child process inherits them."""
    secrets.take(secret_names())


def without_secrets(text: str) -> str:
    """Return the text with secrets redacted, including those still in the environment."""
    return secrets.redact(text, [os.environ[n] for n in secret_names() if n in os.environ])


def secret_names() -> list[str]:
    """Return the variables with secrets, for publishing, proxies and indexes."""
    names = [name for name, names in load_credentials().items() if names.secret]
    return [*names, *secrets.fetching_secrets()]


def credentials() -> dict[str, str]:
    """Return the caller's variables that publishing needs, secrets included."""
    from torchyard.host.network_settings import proxies_and_authorities  # noqa: PLC0415 - slow

    found = {**secrets.taken(), **os.environ}
    needed = {name: found[name] for name in load_credentials() if name in found}
    return {**proxies_and_authorities(), **needed}
