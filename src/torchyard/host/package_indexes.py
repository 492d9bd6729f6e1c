"""The package indexes that this machine uses: those in the settings of uv, and its default."""

from pathlib import Path
from tempfile import TemporaryDirectory

from torchyard.host.installer_settings import uv_environment
from torchyard.host.process import capture, own_program

_INDEXES = ("--index-url ", "--extra-index-url ")
_FIND_LINKS = ("--find-links ",)
_COMPILE = ("pip", "compile", "--quiet", "--no-header", "--emit-index-url", "--emit-find-links")


def configured_indexes() -> list[str]:
    """Return the addresses of the indexes that uv looks into, as it says itself."""
    return _settings(_INDEXES)


def configured_links() -> list[str]:
    """Return the directories and pages with links to files that uv looks into besides."""
    return _settings(_FIND_LINKS)


def _settings(options: tuple[str, ...]) -> list[str]:
    with TemporaryDirectory() as name:
        asked = Path(name, "requirements.txt")
        asked.touch()
        words = [own_program("uv"), *_COMPILE, str(asked)]
        said = capture(words, cwd=Path(name), env=uv_environment())
    found = (
        line.removeprefix(option)
        for line in said.splitlines()
        for option in options
        if line.startswith(option)
    )
    return list(found)
