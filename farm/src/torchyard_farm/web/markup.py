"""What all pages for people share: the frame, and small pieces of HTML."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from string import Template
from typing import NamedTuple

import msgspec

from torchyard_farm.web.progress import GOOD, TaskState

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
"""A page may read what is served with it, and nothing else."""

BUILDBOT = "../../"
"""Where Buildbot's own pages are, seen from these."""


class PageView(NamedTuple):
    """A page, and its parts by their ids, which can be renewed one by one.

    `news` is what somebody who does not see the page should hear of when it changes.
    """

    title: str
    body: str
    parts: Mapping[str, str]
    news: str
    is_live: bool

    def html(self) -> bytes:
        """The whole page."""
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
        """What has to be renewed in a page that somebody has open."""
        return msgspec.json.encode(
            {"version": 1, "live": self.is_live, "news": self.news, "parts": self.parts}
        )


def read_page_data(name: str) -> str:
    return files("torchyard_farm").joinpath("data", name).read_text(encoding="utf-8")


def css_class(state: TaskState) -> str:
    """The class of a state in the style sheet."""
    return f"s-{state.replace(' ', '-')}"


def state_chip(
    state: TaskState, *, href: str = "", key: str = "", label: str = "", title: str = ""
) -> str:
    """A state in its colour, with its name; a link if there is something to look at."""
    hint = f' title="{escape(title)}"' if title else ""
    mark = css_class(state)
    if not href:
        return f'<span class="chip {mark}"{hint}>{state}</span>'
    return (
        f'<a class="chip {mark}" id="{key}" href="{escape(href)}"'
        f' aria-label="{escape(label)}"{hint}>{state}</a>'
    )


def progress_bar(counts: Mapping[TaskState, int], label: str) -> str:
    """A strip with a share for each state."""
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
    """A point in time, to the minute."""
    at = datetime.fromtimestamp(seconds, UTC)
    return f'<time datetime="{at:%Y-%m-%dT%H:%M:%SZ}">{at:%Y-%m-%d %H:%M} UTC</time>'


def breakable_path(path: str) -> str:
    """A path that may be broken behind each of its parts."""
    return "/<wbr>".join(map(escape, path.split("/")))


def count_text(counts: Mapping[TaskState, int], states: Iterable[TaskState]) -> str:
    """Say `2 running, 1 failed`, without what there is none of."""
    return ", ".join(f"{counts[state]:,} {state}" for state in states if counts.get(state))
