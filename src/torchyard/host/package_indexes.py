"""The package indexes that this machine uses: those in the settings of uv, and its default."""

from pathlib import Path
from tempfile import TemporaryDirectory

from torchyard.host.installer_settings import uv_environment
from torchyard.host.process import capture, own_program

_OPTIONS = ("--index-url ", "--extra-index-url ")


def configured_indexes() -> list[str]:
    """Return the addresses of the indexes that uv looks into, as it says itself."""
    with TemporaryDirectory() as name:
        asked = Path(name, "requirements.txt")
        asked.touch()
        words = ["pip", "compile", "--quiet", "--no-header", "--emit-index-url", str(asked)]
        said = capture([own_program("uv"), *words], cwd=Path(name), env=uv_environment())
    found = (
        line.removeprefix(option)
        for line in said.splitlines()
        for option in _OPTIONS
        if line.startswith(option)
    )
    return list(found)
