"""Engines by name: modules of `engines/builtin`, and entry points of plug-ins."""

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import cast

import msgspec

from torchyard.config.plug_ins import install_hint
from torchyard.engines import builtin
from torchyard.engines.engine import Engine
from torchyard.errors import UsageError
from torchyard.model.suggest import did_you_mean

GROUP = "torchyard.engines"
LOCAL = "local"


def _builtin() -> list[str]:
    found = {module.name for module in iter_modules(builtin.__path__)}
    return [LOCAL, *sorted(found - {LOCAL})]


def engine_names() -> list[str]:
    """Return the names of all installed engines, the local one first."""
    from torchyard.host.entry_points import entry_points_in  # noqa: PLC0415 - slow

    return list(dict.fromkeys([*_builtin(), *entry_points_in(GROUP)]))


def find_engine(name: str) -> type[Engine]:
    """Import the class of an engine, and return it."""
    if name in _builtin():
        module = import_module(f"{builtin.__name__}.{name}")
        return cast("type[Engine]", module.engine)
    from torchyard.host.entry_points import entry_points_in, load  # noqa: PLC0415 - slow

    found = entry_points_in(GROUP)
    if name not in found:
        msg = f"there is no engine `{name}`"
        raise UsageError(
            msg, hint=install_hint("engines", name) or did_you_mean(name, engine_names())
        )
    return cast("type[Engine]", load(found[name], f"--engine {name}"))


def make_engine(name: str, options: Mapping[str, object]) -> Engine:
    """Make an engine with options, which are the fields of its class."""
    try:
        return msgspec.convert(options, find_engine(name))
    except msgspec.ValidationError as error:
        msg = f"the engine `{name}` refuses these options: {error}"
        raise UsageError(msg) from error
