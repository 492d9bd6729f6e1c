"""The audit of listings of libtorch zips: their pages and their files."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from torchyard.checks.rules import index as rules
from torchyard.host.fetcher import Fetcher
from torchyard.host.http import CONNECTIONS, FetchResult, redact_url
from torchyard.index.entry import SHARED
from torchyard.index.libtorch.read import Zip, Zips, read_zips
from torchyard.index.simple.read import FileLink, read_listing
from torchyard.publish.index_check.files import FileAudit
from torchyard.publish.index_check.findings import IndexFindings, IndexHit
from torchyard.publish.index_check.simple import Scope
from torchyard.terminal.progress import ProgressLine

LATEST = "latest.json"
_JSON, _HTML = "index.json", "index.html"


class ZipAudit:
    """Audits the listings of projects, one after the other."""

    def __init__(self, fetcher: Fetcher, scope: Scope, findings: IndexFindings) -> None:
        self.files = 0
        self._fetcher = fetcher
        self._scope = scope
        self._findings = findings

    def run(self, urls: Iterable[str]) -> None:
        """Audit the listings at these addresses, and those of their variants."""
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            for url in urls:
                if self._scope.has(_name(url)):
                    self._listings(url, pool)

    def _listings(self, url: str, pool: ThreadPoolExecutor) -> None:
        links, hits = self._read(url)
        if any(hit.rule is rules.DIFFER for hit in hits):
            links, hits = self._read(url)  # was it just being changed?
        self._findings.add(hits)
        self.files += len(links)
        audit = FileAudit(self._fetcher, urlsplit(url).netloc, self._scope.deep)
        with ProgressLine(f"checking zips of {_name(url)}", len(links), "files") as progress:
            for looked in pool.map(audit.look, links):
                self._findings.add(looked.hits)
                progress(1)

    def _read(self, url: str) -> tuple[list[FileLink], list[IndexHit]]:
        """Return the files of the listings as listed, and what is wrong with the pages."""
        hits: list[IndexHit] = []
        whole = self._pages(url, hits)
        found = list(whole.files)
        if whole.project == _name(url):  # and not a variant's
            for variant in sorted({one.variant for one in whole.files} - {SHARED}):
                its = self._pages(f"{url}{variant}/", hits)
                if not its.faults:
                    wanted = [one for one in whole.files if one.variant in (variant, SHARED)]
                    where = f"{redact_url(url)}{variant}/{_JSON}"
                    hits += _compared(where, its.files, "the listing of all variants", wanted)
                found += its.files
        links = {(one.link.url, one.link.size, *one.link.hashes.values()): one for one in found}
        return [one.link for one in links.values()], hits

    def _pages(self, url: str, hits: list[IndexHit]) -> Zips:
        """Read the pages of a listing, and compare them with its JSON, which is returned."""
        where = redact_url(url)
        latest, html, every = (self._fetcher.get(f"{url}{name}") for name in (LATEST, _HTML, _JSON))
        zips, newest = (_zips(answer) for answer in (every, latest))
        for name, read in ((_JSON, zips), (LATEST, newest)):
            hits += (IndexHit(rules.PAGE, f"{where}{name}", what) for what in read.faults)
        if not html.found:
            what = f"it answers {html.status}"
            hits.append(IndexHit(rules.PAGE, f"{where}{_HTML}", what))
        if zips.faults:
            return zips
        if not newest.faults:
            hits += _compared(f"{where}{LATEST}", newest.files, _JSON, _newest(zips))
        if html.found:
            hits += _html_hits(html, zips, where)
        return zips


def _name(url: str) -> str:
    return urlsplit(url).path.rstrip("/").rpartition("/")[2]


def _zips(answer: FetchResult) -> Zips:
    if not answer.found:
        return Zips(faults=(f"it answers {answer.status}",))
    return read_zips(answer.data, answer.url)


def _newest(zips: Zips) -> list[Zip]:
    """Return the files that `latest.json` should list."""
    return [
        one
        for one in zips.files
        if one.link.yanked is None and one.version.partition("+")[0] == zips.latest
    ]


def _compared(
    where: str, files: Iterable[Zip], other: str, wanted: Iterable[Zip]
) -> Iterator[IndexHit]:
    """Compare the files of a page with those that it should have, which `other` lists."""
    ours, theirs = ({(one.link.file, one.link.url): one.link for one in f} for f in (files, wanted))
    for key in sorted(ours.keys() | theirs.keys()):
        if key not in ours:
            yield IndexHit(rules.DIFFER, where, f"it lacks {key[0]}, which {other} has")
        elif key not in theirs:
            yield IndexHit(rules.DIFFER, where, f"it has {key[0]}, which {other} has not")
        elif ours[key] != theirs[key]:
            yield IndexHit(rules.DIFFER, where, f"its entry for {key[0]} differs from {other}")


def _html_hits(answer: FetchResult, zips: Zips, where: str) -> Iterator[IndexHit]:
    page = read_listing(answer.data, answer.url, answer.media)
    yield from (IndexHit(rules.HTML, where, f"html: {fault}") for fault in page.faults)
    links = {(link.file, link.url) for link in page.files}
    wanted = {(one.link.file, one.link.url): one.link.hashes["sha256"] for one in zips.files}
    for key in sorted(links ^ wanted.keys()):
        which = "HTML" if key in links else "JSON"
        yield IndexHit(rules.DIFFER, where, f"only {which} has {key[0]} at {redact_url(key[1])}")
    for (file, url), digest in wanted.items():
        if (file, url) in links and digest.encode() not in answer.data:
            yield IndexHit(rules.DIFFER, where, f"HTML lacks the sha256 of {file}")
