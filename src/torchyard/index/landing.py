"""The landing page of a channel, which shows the install command for each package.

Its bytes change only when a package or a variant is added or removed, so publishing another version
does not rewrite it. Its script reads versions, platforms and Pythons from the head, and
takes addresses from its own, so that a copy of the channel works unchanged.
Without the script, it still has tables with links, and a command for each variant.
"""

from base64 import b64encode
from collections.abc import Container, Iterator, Mapping, Sequence
from hashlib import sha256
from html import escape
from string import Template

from torchyard.host.files import read_data
from torchyard.index.availability import PackageOffer
from torchyard.index.page import Media, Page
from torchyard.index.section import Elsewhere, LandingRow
from torchyard.index.sections import SECTIONS
from torchyard.model.quantity import show_count
from torchyard.model.version import version_numbers

LANDING = "index.html"
_OPEN = 2
"""The number of packages whose table is open at first; the others open on demand."""


def landing_page(
    name: str,
    parts: Mapping[str, Sequence[PackageOffer]],
    serial: int,
    elsewhere: Elsewhere = None,
) -> Page:
    """Return the page of a channel with its parts' offers; `serial` distinguishes equal pages."""
    found = {row for part, offered in parts.items() for row in _rows(part, offered)}
    rows = sorted(found, key=_row_sort_key)
    by_project: dict[str, list[LandingRow]] = {}
    for row in rows:
        by_project.setdefault(row.project, []).append(row)
    projects = sorted(by_project, key=lambda project: (-_forms(by_project[project]), project))
    style = read_data("templates/style.css").rstrip("\n")
    template = read_data("landing.html").replace("$style", style)
    text = Template(template).substitute(
        policy=_policy(template),
        title=escape(name or "Packages"),
        summary=_summary(len(projects), {row.section for row in rows}),
        tables="\n".join(
            _project(project, by_project[project], shown=project in projects[:_OPEN])
            for project in projects
        ),
        serial=serial,
        example=escape(projects[0]) if projects else "NAME",
        commands="\n".join(_commands(projects[0], rows, elsewhere)) if projects else "",
    )
    return Page(LANDING, text.encode(), Media.HTML)


def _rows(part: str, found: Sequence[PackageOffer]) -> Iterator[LandingRow]:
    section = part.partition("/")[0]
    position = [*SECTIONS].index(section)
    for offer in found:
        yield LandingRow(
            offer.project, position, section, offer.name, offer.variant, offer.build, offer.torch
        )


def _row_sort_key(row: LandingRow) -> tuple[LandingRow, tuple[int, ...], LandingRow]:
    """Return a key that sorts rows by project and section, then the newest torch first."""
    newest = tuple(-number for number in version_numbers(row.torch))
    return row._replace(variant="", build="", torch=""), newest, row


def _forms(rows: Sequence[LandingRow]) -> int:
    return len({row.section for row in rows})


def _summary(projects: int, found: Container[str]) -> str:
    if not projects:
        return "Nothing is published here yet."
    *most, last = (section.TITLE for name, section in SECTIONS.items() if name in found)
    kinds = f"{', '.join(most)} and {last}" if most else last
    return f"{show_count(projects, 'package')}: {kinds}."


def _policy(template: str) -> str:
    """Return a content security policy that allows only the page's own script and channel."""
    digests = {}
    for tag in ("script", "style"):
        inside = template.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
        digests[tag] = b64encode(sha256(inside.encode()).digest()).decode()
    return (
        f"default-src 'none'; base-uri 'none'; form-action 'none'; connect-src 'self'; "
        f"img-src data:; script-src 'sha256-{digests['script']}'; "
        f"style-src 'sha256-{digests['style']}'"
    )


def _project(project: str, rows: Sequence[LandingRow], *, shown: bool) -> str:
    bodies = "".join(
        f'<tbody><tr class="kind"><th colspan="3" scope="rowgroup">{section.TITLE}</th></tr>\n'
        f"{''.join(_row(row) for row in rows if row.section == name)}</tbody>"
        for name, section in SECTIONS.items()
        if any(row.section == name for row in rows)
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


def _row(row: LandingRow) -> str:
    title = escape(row.title)
    link = (
        f'<a href="{escape(href)}">{title}</a>'
        if (href := SECTIONS[row.section].page_of(row))
        else title
    )
    facts = "".join(
        f' data-{key}="{escape(value)}"'
        for key, value in (
            ("shelf", row.section),
            ("name", row.name),
            ("variant", row.variant),
            *([("torch", row.torch)] if row.torch else []),
        )
    )
    return f'<tr{facts}><th scope="row">{link}</th><td></td><td></td></tr>\n'


def _commands(example: str, rows: Sequence[LandingRow], elsewhere: Elsewhere) -> Iterator[str]:
    """Yield the commands: for each variant, and for each build of the example."""
    here = '<span class="here">HERE</span>'
    for section in SECTIONS.values():
        for title, command in section.examples(example, rows, here, elsewhere):
            yield _command(title, command)


def _command(title: str, command: str) -> str:
    return f"<dt>{escape(title)}</dt><dd><code>{command}</code></dd>"
