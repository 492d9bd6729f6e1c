"""The audit of a simple index: its list of projects, their pages and their files."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

import msgspec
from packaging.utils import canonicalize_name

from torchyard.checks.rules import index as rules
from torchyard.errors import SelectionError
from torchyard.host.fetcher import Fetcher
from torchyard.host.http import CONNECTIONS, FetchResult, redact_url
from torchyard.index.simple.read import (
    ACCEPT_HTML,
    ACCEPT_JSON,
    HTML_MEDIA,
    FileLink,
    Listing,
    read_listing,
)
from torchyard.model.matrix import any_match
from torchyard.model.quantity import show_count
from torchyard.model.values import Value
from torchyard.publish.index_check.files import FileAudit, Looked, required_names
from torchyard.publish.index_check.findings import IndexFindings, IndexHit
from torchyard.publish.index_check.pages import Pages, metadata_hits, page_hits
from torchyard.terminal.progress import ProgressLine

_Key = tuple[str, bytes]
_BATCH = 8
"""The most projects whose pages are in memory at once."""


class Scope(Value, kw_only=True):
    """The part of an index to audit, and how closely."""

    projects: tuple[str, ...] = ()
    """Globs over names of projects; empty for all."""
    external: tuple[str, ...] = ()
    """Globs over names that come from other indexes."""
    deep: bool = False
    agree: Callable[[int, str], None] = lambda _count, _what: None
    """Raises an error unless the user agrees to read this many projects or packages."""

    def has(self, project: str) -> bool:
        return not self.projects or any_match(canonicalize_name(project), self.projects)


def read_pages(fetcher: Fetcher, name: str, url: str) -> Pages:
    """Read a page as HTML and JSON; servers of plain files have the latter as `index.json`."""
    first = fetcher.get(url, ACCEPT_JSON)
    listing = _listing(first)
    if listing is not None and listing.kind == "json":
        html = _listing(fetcher.get(url, ACCEPT_HTML))
        is_html = html is not None and html.kind == "html"
        return Pages(name=name, url=url, json=listing, html=html if is_html else None)
    second = fetcher.get(urljoin(first.url if first.found else url, "index.json"))
    is_json = second.found and second.media not in HTML_MEDIA  # servers may answer any request
    json = read_listing(second.data, first.url, "json") if is_json else None
    return Pages(name=name, url=url, html=listing, json=json)


def _listing(answer: FetchResult) -> Listing | None:
    return read_listing(answer.data, answer.url, answer.media) if answer.found else None


class _View(NamedTuple):
    """A simple index: its address, its listed projects, and their requirements."""

    url: str
    projects: Mapping[str, str]
    listed: frozenset[str] | None
    required: dict[str, str]


class SimpleAudit:
    """Audits simple indexes that share files, such as the variants of a channel."""

    def __init__(self, fetcher: Fetcher, scope: Scope, findings: IndexFindings) -> None:
        self.projects = 0
        self.files = 0
        self._fetcher = fetcher
        self._scope = scope
        self._findings = findings

    def run(self, roots: Sequence[str]) -> None:
        """Audit the indexes at these addresses, or the page of one project."""
        views = [view for root in roots if (view := self._view(root)) is not None]
        if not views:
            msg = f"there is no index at {redact_url(roots[0])}"
            hint = "name the page that lists the projects, that of a project, or a conda channel"
            raise SelectionError(msg, hint=hint)
        names = sorted({name for view in views for name in view.projects})
        if not names and self._scope.projects:
            msg = f"{', '.join(self._scope.projects)} names no project of {redact_url(roots[0])}"
            raise SelectionError(msg, hint="names are as in its list: lower case, with dashes")
        self.projects = len(names)
        self._scope.agree(len(names), "projects")
        with (
            ThreadPoolExecutor(CONNECTIONS) as pool,
            ProgressLine("checking", len(names), "projects") as progress,
        ):
            for start in range(0, len(names), _BATCH):
                progress.reach(start)
                self._batch(names[start : start + _BATCH], views, pool, progress)
            self._findings.add(self._unresolved(views, pool))

    def _batch(
        self,
        names: Sequence[str],
        views: Sequence[_View],
        pool: ThreadPoolExecutor,
        progress: ProgressLine,
    ) -> None:
        """Audit projects, fetching their pages concurrently."""
        chosen = [(name, view) for name in names for view in views if name in view.projects]
        pages = pool.map(
            lambda pair: read_pages(self._fetcher, pair[0], pair[1].projects[pair[0]]), chosen
        )
        last = ""
        done: dict[_Key, Looked] = {}
        for (name, view), read in zip(chosen, pages, strict=True):
            if name != last:  # its files are shared by views, not by other projects
                last, done = name, {}
            self._project(read, view, pool, done, progress)

    def _view(self, root: str) -> _View | None:
        """Read the list of projects; a page with files is a project's."""
        pages = read_pages(self._fetcher, "", root)
        where = redact_url(root)
        if pages.html is None and pages.json is None:
            self._findings.add([IndexHit(rules.PAGE, where, "there is no page")])
            return None
        if pages.files or (pages.json and pages.json.name):
            name = urlsplit(root).path.rstrip("/").rpartition("/")[2]
            return _View(urljoin(root, "../"), {name: root}, None, {})
        self._findings.add(_root_hits(pages, where))
        best = pages.html or pages.json
        projects = {
            project.name: project.url if project.url.endswith("/") else f"{project.url}/"
            for project in (best.projects if best else ())
            if self._scope.has(project.name)
        }
        known = {canonicalize_name(project.name) for project in (best.projects if best else ())}
        return _View(root, projects, frozenset(known), {})

    def _project(
        self,
        pages: Pages,
        view: _View,
        pool: ThreadPoolExecutor,
        done: dict[_Key, Looked],
        progress: ProgressLine,
    ) -> None:
        hits = list(page_hits(pages))
        if any(hit.rule is rules.DIFFER for hit in hits):
            pages = read_pages(self._fetcher, pages.name, pages.url)  # it may have just changed
            hits = list(page_hits(pages))
        self._findings.add(hits)
        site = urlsplit(view.url).netloc
        audit = FileAudit(self._fetcher, site, self._scope.deep)
        fresh = [link for link in pages.files if _key(link) not in done]
        for link, looked in zip(fresh, pool.map(audit.look, fresh), strict=True):
            done[_key(link)] = looked
            self._findings.add(looked.hits)
            self.files += 1
            progress.what = f"checking {pages.name}, {show_count(self.files, 'file')} so far"
            progress(0)
        facts = {
            link.file: fact for link in pages.files if (fact := done[_key(link)].facts) is not None
        }
        self._findings.add(metadata_hits(facts))
        for file, fact in facts.items():
            for name in required_names(fact):
                view.required.setdefault(name, file)

    def _unresolved(self, views: Sequence[_View], pool: ThreadPoolExecutor) -> Iterator[IndexHit]:
        """Yield required names that an index lacks."""
        missing: dict[str, list[_View]] = {}
        for view in views:
            names = sorted(n for n in view.required if not any_match(n, self._scope.external))
            there = pool.map(partial(self._has, view), names)
            for name, found in zip(names, there, strict=True):
                if not found:
                    missing.setdefault(name, []).append(view)
        for name, (first, *others) in sorted(missing.items()):
            more = f", nor in {show_count(len(others), 'other variant')}" if others else ""
            what = f"`{name}` is not in {redact_url(first.url)}{more}"
            yield IndexHit(rules.UNRESOLVED, first.required[name], what)

    def _has(self, view: _View, name: str) -> bool:
        if view.listed is not None:
            return name in view.listed
        return self._fetcher.get(urljoin(view.url, f"{name}/"), ACCEPT_JSON).found


def _key(link: FileLink) -> _Key:
    """Return the address of a file, and the page's facts to compare with it."""
    stated = (link.hashes, link.metadata, link.size, link.requires_python)
    return link.url, msgspec.json.encode(stated, order="sorted")


def _root_hits(pages: Pages, where: str) -> Iterator[IndexHit]:
    for listing in filter(None, (pages.html, pages.json)):
        rule = rules.HTML if listing.kind == "html" else rules.PAGE
        yield from (IndexHit(rule, where, f"{listing.kind}: {fault}") for fault in listing.faults)
    if pages.html is not None and pages.json is not None and pages.json.readable:
        html, json = (
            {canonicalize_name(project.name) for project in listing.projects}
            for listing in (pages.html, pages.json)
        )
        for name in sorted(html ^ json):
            which = "HTML" if name in html else "JSON"
            yield IndexHit(rules.DIFFER, where, f"only {which} lists `{name}`")
