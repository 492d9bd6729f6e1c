"""The frame of all pages, and small pieces of HTML."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from string import Template
from typing import NamedTuple

import msgspec

from torchyard.host.files import read_data
from torchyard_farm.web.progress import GOOD, TaskState

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
"""The content security policy: a page may load only files of the same server."""

BUILDBOT = "../../"
"""Path of Buildbot's own pages, relative to these."""


class PageView(NamedTuple):
    """A page, and its parts by id, which a browser can replace separately.

    `news` is announced by screen readers when it changes.
    """

    title: str
    body: str
    parts: Mapping[str, str]
    news: str
    is_live: bool

    def html(self) -> bytes:
        """Return the whole page."""
        live = "yes" if self.is_live else "no"
        text = Template(read_page_data("page.html")).substitute(
            title=escape(self.title),
            live=live,
            refresh='<meta http-equiv="refresh" content="10">' if self.is_live else "",
            news=escape(self.news),
            body=self.body,
        )
        return text.encode()

    def json(self) -> bytes:
        """Return the parts that a browser replaces in an open page."""
        return msgspec.json.encode(
            {"version": 1, "live": self.is_live, "news": self.news, "parts": self.parts}
        )


def read_page_data(name: str) -> str:
    if name == "shared.css":
        return read_data("templates/style.css")
    return files("torchyard_farm").joinpath("data", name).read_text(encoding="utf-8")


def css_class(state: TaskState) -> str:
    """Return the CSS class of a state."""
    return f"s-{state.replace(' ', '-')}"


def state_chip(
    state: TaskState, *, href: str = "", key: str = "", label: str = "", title: str = ""
) -> str:
    """Return a state with its colour and name, as a link if `href` is given."""
    hint = f' title="{escape(title)}"' if title else ""
    mark = css_class(state)
    if not href:
        return f'<span class="chip {mark}"{hint}>{state}</span>'
    return (
        f'<a class="chip {mark}" id="{key}" href="{escape(href)}"'
        f' aria-label="{escape(label)}"{hint}>{state}</a>'
    )


def progress_bar(counts: Mapping[TaskState, int], label: str) -> str:
    """Return a bar with a share for each state."""
    total = max(1, sum(counts.values()))
    shares, left = [], 0.0
    for state in (*GOOD, *(state for state in TaskState if state not in GOOD)):
        share = 100 * counts.get(state, 0) / total
        if share:
            shares.append(
                f'<rect class="{css_class(state)}" x="{left:.2f}" width="{share:.2f}" height="1"/>'
            )
        left += share
    return (
        f'<svg class="bar" role="img" aria-label="{escape(label)}" viewBox="0 0 100 1"'
        f' preserveAspectRatio="none">{"".join(shares)}</svg>'
    )


def time_tag(seconds: int) -> str:
    """Return a time, to the minute."""
    at = datetime.fromtimestamp(seconds, UTC)
    return f'<time datetime="{at:%Y-%m-%dT%H:%M:%SZ}">{at:%Y-%m-%d %H:%M} UTC</time>'


def breakable_path(path: str) -> str:
    """Return a path that may be broken after each of its parts."""
    return "/<wbr>".join(map(escape, path.split("/")))


def count_text(counts: Mapping[TaskState, int], states: Iterable[TaskState]) -> str:
    """Return `2 running, 1 failed`, without states that have no tasks."""
    return ", ".join(f"{counts[state]:,} {state}" for state in states if counts.get(state))
