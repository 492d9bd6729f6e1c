"""The command `tt-config`."""

from pathlib import Path

from . import _C, __version__  # noqa: TID252 - linted where it is not installed


def main() -> None:
    print(f"tinytorch {__version__}")
    print(f"CMAKE_PREFIX_PATH={Path(__file__).parent / 'share' / 'cmake'}")
    print(_C._show_config(), end="")
