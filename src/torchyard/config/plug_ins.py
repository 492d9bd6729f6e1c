"""The table of known plug-ins: the distributions that provide commands and engines."""

from typing import Literal

from torchyard.config.tables import parse_data
from torchyard.host.files import read_data
from torchyard.model.values import Value


class PlugIn(Value, kw_only=True):
    """The commands and engines of one distribution."""

    install: str
    """What pip installs: a folder of torchyard's repository, or a name on PyPI."""
    commands: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()


def install_hint(kind: Literal["commands", "engines"], name: str) -> str | None:
    """Return how to install the plug-in that provides a command or an engine, or None."""
    for distribution, plug_in in parse_data("plug_ins", read_data("plug_ins.toml"), PlugIn).items():
        if name in getattr(plug_in, kind):
            where = "in a clone, " if plug_in.install.startswith(".") else ""
            return f"install {distribution}: {where}`pip install {plug_in.install}`"
    return None
