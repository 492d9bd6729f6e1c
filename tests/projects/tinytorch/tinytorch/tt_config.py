"""The command `tt-config`."""

from pathlib import Path

from . import __version__
from ._C import _show_config


def main() -> None:
    print(f"tinytorch {__version__}")
    print(f"CMAKE_PREFIX_PATH={Path(__file__).parent / 'share' / 'cmake'}")
    print(_show_config(), end="")
