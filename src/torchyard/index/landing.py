"""The page that people find at the address of a channel: which command do I need?

Its bytes change only when a package or a variant comes or goes, so publishing one more version does
not write it anew. Versions, platforms and Pythons are read by its script from the head, and
addresses are taken from where the page was found, so that a copy of the channel works as it is.
Without the script there are still tables with links, and a command for each variant.
"""

from base64 import b64encode
from collections.abc import Container, Iterator, Mapping, Sequence
from hashlib import sha256
from html import escape
from string import Template
from typing import NamedTuple
from urllib.parse import quote

from torchyard.host.files import read_data
from torchyard.index.availability import Offer
from torchyard.index.entry import WHOLE
from torchyard.index.page import Media, Page
from torchyard.model.quantity import show_count

LANDING = "index.html"
_KINDS = {"simple": "wheels", "conda": "conda packages", "libtorch": "libtorch zips for C++"}
_OPEN = 2
"""So many packages have their table open; the others show theirs on demand."""


class _Row(NamedTuple):
    """A package in one form and variant, whatever its version; in the order of the page."""

    project: str
    form: int
    shelf: str
    name: str
    variant: str
    build: str = ""


def landing_page(name: str, parts: Mapping[str, Sequence[Offer]], serial: int) -> Page:
    """The page of a channel with the offers of its parts; `serial` tells equal pages apart."""
    rows = sorted({row for part, found in parts.items() for row in _rows(part, found)})
    by_project: dict[str, list[_Row]] = {}
    for row in rows:
        by_project.setdefault(row.project, []).append(row)
    projects = sorted(by_project, key=lambda project: (-_forms(by_project[project]), project))
    template = read_data("landing.html")
    text = Template(template).substitute(
        policy=_policy(template),
        title=escape(name or "Packages"),
        summary=_summary(len(projects), {row.shelf for row in rows}),
        tables="\n".join(
            _project(project, by_project[project], shown=project in projects[:_OPEN])
            for project in projects
        ),
        serial=serial,
        example=escape(projects[0]) if projects else "NAME",
        commands="\n".join(_commands(projects[0], rows)) if projects else "",
    )
    return Page(LANDING, text.encode(), Media.HTML)


def _rows(part: str, found: Sequence[Offer]) -> Iterator[_Row]:
    shelf = part.partition("/")[0]
    form = [*_KINDS].index(shelf)
    for offer in found:
        yield _Row(offer.project, form, shelf, offer.name, offer.variant, offer.build)


def _forms(rows: Sequence[_Row]) -> int:
    return len({row.shelf for row in rows})


def _summary(projects: int, shelves: Container[str]) -> str:
    if not projects:
        return "Nothing is published here yet."
    *most, last = (kind for shelf, kind in _KINDS.items() if shelf in shelves)
    kinds = f"{', '.join(most)} and {last}" if most else last
    return f"{show_count(projects, 'package')}: {kinds}."


def _policy(template: str) -> str:
    """Let the page run its own script and nothing else, and read nothing from elsewhere."""
    digests = {}
    for tag in ("script", "style"):
        inside = template.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
        digests[tag] = b64encode(sha256(inside.encode()).digest()).decode()
    return (
        f"default-src 'none'; base-uri 'none'; form-action 'none'; connect-src 'self'; "
        f"img-src data:; script-src 'sha256-{digests['script']}'; "
        f"style-src 'sha256-{digests['style']}'"
    )


def _project(project: str, rows: Sequence[_Row], *, shown: bool) -> str:
    bodies = "".join(
        f'<tbody><tr class="kind"><th colspan="3" scope="rowgroup">{kind}</th></tr>\n'
        f"{''.join(_row(row) for row in rows if row.shelf == shelf)}</tbody>"
        for shelf, kind in _KINDS.items()
        if any(row.shelf == shelf for row in rows)
    )
    heads = "".join(
        f'<th scope="col" class="{name.split()[-1].lower()}">{name}</th>'
        for name in ("Variant", "Newest version", "Published")
    )
    return (
        f'<details class="project card"{" open" if shown else ""}>'
        f"<summary><h3>{escape(project)}</h3></summary>\n<table><thead><tr>{heads}</tr></thead>"
        f"{bodies}</table></details>"
    )


def _row(row: _Row) -> str:
    variant = escape(row.variant or "any")
    link = f'<a href="{escape(href)}">{variant}</a>' if (href := _href(row)) else variant
    facts = "".join(
        f' data-{key}="{escape(value)}"'
        for key, value in (("shelf", row.shelf), ("name", row.name), ("variant", row.variant))
    )
    return f'<tr{facts}><th scope="row">{link}</th><td></td><td></td></tr>\n'


def _href(row: _Row) -> str:
    match row.shelf:
        case "simple":
            return quote(f"{row.variant or WHOLE}/{row.name}/index.html")
        case "libtorch":
            variant = f"{row.variant}/" if row.variant else ""
            return quote(f"libtorch/{row.name}/{variant}index.html")
        case _:
            return ""


def _commands(example: str, rows: Sequence[_Row]) -> Iterator[str]:
    """For each variant the command for pip; for each build of the example that of conda."""
    here = '<span class="here">HERE</span>'
    for variant in sorted({row.variant for row in rows if row.shelf == "simple"}):
        index = escape(quote(variant or WHOLE))
        command = f"pip install {escape(example)} --index-url {here}/{index}/"
        yield _command(f"pip, {variant or 'any'}", command)
    for row in rows:
        if row.shelf == "conda" and row.project == example:
            spec = f"{row.name}=*={row.build}" if row.build else row.name
            command = f'conda install -c {here}/conda -c conda-forge "{escape(spec)}"'
            yield _command(f"conda, {row.variant or 'any'}", command)


def _command(title: str, command: str) -> str:
    return f"<dt>{escape(title)}</dt><dd><code>{command}</code></dd>"
