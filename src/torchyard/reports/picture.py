"""Elements of a page's pictures, which `data/templates/picture.svg` draws."""

from typing import NamedTuple

from torchyard.reports.templates import Filters

LETTER, LINE = 6.7, 15
"""The width of a letter and the height of a line."""


class Rect(NamedTuple):
    """A rectangle in a picture."""

    x: float
    y: float
    width: float
    height: float


class PictureText(NamedTuple):
    """Text in a shape; `y` is its baseline."""

    x: float
    y: float
    words: str


class Shape(NamedTuple):
    """A rectangle with a title and texts; its kind selects the colour."""

    kind: str
    title: str
    rect: Rect
    texts: tuple[PictureText, ...]
    corner: int = 0
    """The radius of the corners."""


class Line(NamedTuple):
    """A curve, as an SVG path."""

    kind: str
    path: str


class SvgPicture(NamedTuple):
    """A picture with a title and a description, for screen readers."""

    name: str
    width: int
    height: int
    title: str
    description: str
    shapes: tuple[Shape, ...]
    lines: tuple[Line, ...] = ()


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


PICTURE_FILTERS: Filters = {"number": _number}
