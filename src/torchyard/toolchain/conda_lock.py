"""Solve conda environments into a lock, which has rattler's format."""

import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory

from torchyard.errors import HostError
from torchyard.host.cache import cache_folder
from torchyard.model.lock import BUILD, CONDA, HOST, conda_head
from torchyard.model.tables import Platform, python_of
from torchyard.model.toolchain import CondaToolchain
from torchyard.toolchain.rattler import call_rattler

USER = "conda environments"

_ALIAS = "CONDA_CHANNEL_ALIAS"
"""The variable, also conda's, with the address that names of channels are below."""

_ANACONDA = "https://conda.anaconda.org"
_GLIBC = re.compile(r"manylinux_(\d+)_(\d+)_")


def solve_environments(
    conda: CondaToolchain, platform: Platform, tag: str, base: Path, *, like: str = ""
) -> str:
    """Return the lock of both environments for a Python; prefer the packages of another lock.

    Directories of channels are relative to `base`. The solution does not depend on this machine:
    the C library is as old as the platform's wheels promise.
    """
    glibc = _GLIBC.match(platform.wheel_tag)
    python = python_of(tag)
    if glibc is None or python is None:
        msg = f"conda environments of {tag} can't be solved for {platform.wheel_tag}"
        raise HostError(msg, hint="they are for Linux, and for a Python such as cp312")
    pins = (f"python {python.version}.*", f"python_abi {python.version}.* *_{tag}")
    system = {"__unix": "0", "__linux": "5.10", "__glibc": f"{glibc[1]}.{glibc[2]}"}
    with TemporaryDirectory(prefix="torchyard-conda-") as scratch:
        file, preferred = Path(scratch, "conda.lock"), Path(scratch, "like.lock")
        preferred.write_text(like, encoding="utf-8")
        asked = {
            "subdir": platform.conda_subdir,
            "channels": [_channel(name, base) for name in conda.channels],
            "alias": channel_alias(),
            "environments": {BUILD: conda.build, HOST: (*conda.host, *pins)},
            "system": system,
            "cache": str(cache_folder(CONDA) or scratch),
            "like": str(preferred) if like else "",
            "file": str(file),
        }
        if error := call_rattler("lock", asked, USER).error:
            msg = f"no set of packages fulfils `conda` of [toolchain] for {tag}, in {error}"
            raise HostError(msg, hint="correct `build`, `host` or `channels`")
        return conda_head(conda) + file.read_text(encoding="utf-8")


def channel_alias() -> str:
    """Return the address that names of channels are below, on this machine."""
    return f"{os.environ.get(_ALIAS, _ANACONDA).rstrip('/')}/"


def find_channel(name: str) -> str:
    """Return a channel's address on this machine; directories stay as they are."""
    is_name = "://" not in name and not name.startswith((".", "/"))
    return f"{channel_alias()}{name}" if is_name else name


def channel_address(channel: str) -> str:
    """Return the address of a channel or directory."""
    return channel if "://" in channel else Path(channel).absolute().as_uri()


def is_remote(name: str) -> bool:
    """Return whether packages of a channel are fetched by the network."""
    return "://" in (address := find_channel(name)) and not address.startswith("file://")


def _channel(name: str, base: Path) -> str:
    """Return a channel's address, or its name."""
    return (base / name).resolve().as_uri() if name.startswith((".", "/")) else name
