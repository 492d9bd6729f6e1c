"""Metadata texts of packages: their parsers, and all rules over them."""

from contextlib import suppress

from tests.fuzz.choices import Choices
from tests.fuzz.laws import check_all
from tests.support.contents import ABOUT, CONDA_NAME, SITE, WHEEL_NAME, conda, wheel

from torchyard.errors import BuildError
from torchyard.package.wheel.dist_info import parse_record
from torchyard.package.wheel.write import parse_metadata

TEXTS = (
    f"{ABOUT}/RECORD",
    f"{ABOUT}/METADATA",
    f"{ABOUT}/WHEEL",
    f"{ABOUT}/torchyard-spec.json",
    f"{ABOUT}/top_level.txt",
    "tiny/version.py",
    "tiny/share/cmake/TinyConfig.cmake",
    "tiny.pth",
)
CONDA_TEXTS = ("info/index.json", "info/paths.json", "info/about.json", f"{SITE}/tiny/version.py")


def try_one(data: bytes) -> None:
    choices = Choices(data)
    name = choices.pick((*TEXTS, *CONDA_TEXTS))
    file_name = _file_name(choices, name)
    text = choices.rest()
    if name == "info/paths.json":
        check_all(conda(paths=text, name=file_name))
    elif name in CONDA_TEXTS:
        check_all(conda({name: text}, name=file_name))
    else:
        check_all(wheel({name: text}, name=file_name), wheel())
    _parse(text.decode(errors="replace"))


def _file_name(choices: Choices, name: str) -> str:
    """A name of the package; what is odd about it comes from the input, too."""
    usual = CONDA_NAME if name in CONDA_TEXTS else WHEEL_NAME
    if not choices.rarely():
        return usual
    ending = ".conda" if name in CONDA_TEXTS else ".whl"
    return choices.text().decode(errors="replace") + ending


def _parse(text: str) -> None:
    rows, problems = parse_record(text)
    assert len(rows) + len(problems) <= len(text) + 1
    for row in rows:
        assert row.name
        assert bool(row.algorithm) == bool(row.digest)
    with suppress(BuildError):
        parse_metadata(text)
