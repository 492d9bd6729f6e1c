"""What pictures of a page consist of; `data/templates/picture.svg` draws them."""

from typing import NamedTuple

from torchyard.reports.templates import Filters

LETTER, LINE = 6.7, 15
"""The width of a letter, and the height of a line."""


class Rect(NamedTuple):
    """A place in the picture."""

    x: float
    y: float
    width: float
    height: float


class PictureText(NamedTuple):
    """Words in a shape; `y` is that of their base line."""

    x: float
    y: float
    words: str


class Shape(NamedTuple):
    """A rectangle with a title, and words in it; its kind says how it is coloured."""

    kind: str
    title: str
    place: Rect
    texts: tuple[PictureText, ...]
    corner: int = 0
    """The radius of its corners."""


class Line(NamedTuple):
    """A curve, in SVG's words."""

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
