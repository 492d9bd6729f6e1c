"""Providers by name: a module of `ci/providers`, with its table in `data/ci/`."""

from importlib import import_module
from pkgutil import iter_modules
from typing import cast

from torchyard.ci import providers
from torchyard.ci.provider import CiProvider
from torchyard.errors import UsageError
from torchyard.model.suggest import did_you_mean


def provider_names() -> list[str]:
    return sorted(module.name for module in iter_modules(providers.__path__))


def find_provider(name: str) -> CiProvider:
    """Return the module of a provider."""
    if name not in provider_names():
        msg = f"there is no CI provider `{name}`"
        raise UsageError(msg, hint=did_you_mean(name, provider_names()))
    return cast("CiProvider", import_module(f"{providers.__name__}.{name}"))
