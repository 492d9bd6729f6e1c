"""The index check: determine the kind of index at an address, and audit it from outside.

It reads only what installers read, even of torchyard's own channels.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated
from urllib.parse import urljoin, urlsplit

import msgspec

from torchyard.checks.rules import index as rules
from torchyard.host.fetcher import Fetcher
from torchyard.host.http import CONNECTIONS, FetchResult, redact_url
from torchyard.index.conda.read import PACKED, REPODATA
from torchyard.index.conda.repodata import NOARCH
from torchyard.index.conda.section import CondaSection
from torchyard.index.entry import SHARED, WHOLE
from torchyard.index.libtorch.read import Zip, Zips, read_zips
from torchyard.index.libtorch.section import LibtorchSection
from torchyard.index.sections import SECTIONS
from torchyard.index.simple.read import FileLink, read_listing
from torchyard.index.simple.section import SimpleSection
from torchyard.model.values import UNDECODABLE, Value
from torchyard.publish.channel.head import HEAD, Head
from torchyard.publish.index_check.conda import CondaAudit
from torchyard.publish.index_check.files import FileAudit
from torchyard.publish.index_check.findings import IndexFindings, IndexHit
from torchyard.publish.index_check.simple import Scope, SimpleAudit
from torchyard.terminal.progress import ProgressLine

LATEST = "latest.json"
_JSON, _HTML = "index.json", "index.html"


class ZipAudit:
    """Audits the listings of projects one by one."""

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
            links, hits = self._read(url)  # it may have changed during the audit
        self._findings.add(hits)
        self.files += len(links)
        audit = FileAudit(self._fetcher, urlsplit(url).netloc, self._scope.deep)
        with ProgressLine(f"checking zips of {_name(url)}", len(links), "files") as progress:
            for looked in pool.map(audit.look, links):
                self._findings.add(looked.hits)
                progress(1)

    def _read(self, url: str) -> tuple[list[FileLink], list[IndexHit]]:
        """Return the listed files, and the faults of the pages."""
        hits: list[IndexHit] = []
        whole = self._pages(url, hits)
        found = list(whole.files)
        if whole.project == _name(url):  # rather than a variant's
            for variant in sorted({file.variant for file in whole.files} - {SHARED}):
                its = self._pages(f"{url}{variant}/", hits)
                if not its.faults:
                    wanted = [file for file in whole.files if file.variant in (variant, SHARED)]
                    where = f"{redact_url(url)}{variant}/{_JSON}"
                    hits += _compared(where, its.files, "the listing of all variants", wanted)
                found += its.files
        links = {(f.link.url, f.link.size, *f.link.hashes.values()): f for f in found}
        return [link.link for link in links.values()], hits

    def _pages(self, url: str, hits: list[IndexHit]) -> Zips:
        """Read the pages of a listing, compare them with its JSON, and return the JSON."""
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
        file
        for file in zips.files
        if file.link.yanked is None and file.version.partition("+")[0] == zips.latest
    ]


def _compared(
    where: str, files: Iterable[Zip], other: str, wanted: Iterable[Zip]
) -> Iterator[IndexHit]:
    """Compare the files of a page with `other`, which lists the expected files."""
    ours, theirs = ({(f.link.file, f.link.url): f.link for f in fs} for fs in (files, wanted))
    for key in sorted(ours.keys() | theirs.keys()):
        if key not in ours:
            yield IndexHit(rules.DIFFER, where, f"it lacks {key[0]}, which {other} has")
        elif key not in theirs:
            yield IndexHit(rules.DIFFER, where, f"it has {key[0]}, which {other} lacks")
        elif ours[key] != theirs[key]:
            yield IndexHit(rules.DIFFER, where, f"its entry for {key[0]} differs from {other}")


def _html_hits(answer: FetchResult, zips: Zips, where: str) -> Iterator[IndexHit]:
    page = read_listing(answer.data, answer.url, answer.media)
    yield from (IndexHit(rules.HTML, where, f"html: {fault}") for fault in page.faults)
    links = {(link.file, link.url) for link in page.files}
    wanted = {(zip_.link.file, zip_.link.url): zip_.link.hashes["sha256"] for zip_ in zips.files}
    for key in sorted(links ^ wanted.keys()):
        which = "HTML" if key in links else "JSON"
        yield IndexHit(rules.DIFFER, where, f"only {which} has {key[0]} at {redact_url(key[1])}")
    for (file, url), digest in wanted.items():
        if (file, url) in links and digest.encode() not in answer.data:
            yield IndexHit(rules.DIFFER, where, f"HTML lacks the sha256 of {file}")


CHANNEL = "channel"
Sort = Annotated[str, msgspec.Meta(extra_json_schema={"enum": sorted((CHANNEL, *SECTIONS))})]
"""A channel of torchyard, or the kind of its section that an index resembles."""


class Audit(Value, kw_only=True):
    """The audited index, and the extent of the audit."""

    url: str
    sort: Sort
    projects: int
    files: int


def audit(url: str, scope: Scope, subdirs: Iterable[str], findings: IndexFindings) -> Audit:
    """Audit the index at an address; `subdirs` are those that a conda channel may have.

    Names that torchyard's own channel declares as external are taken from its head, which is read
    without a question.
    """
    fetcher = Fetcher(url)
    head = _own_head(fetcher, url)
    declared = head or _own_head(fetcher, urljoin(url, "../"))
    if declared is not None:
        external = (*scope.external, *declared.external)
        scope = Scope(projects=scope.projects, external=external, deep=scope.deep)
    simple = SimpleAudit(fetcher, scope, findings)
    conda = CondaAudit(fetcher, scope, findings)
    zips = ZipAudit(fetcher, scope, findings)
    names = [NOARCH, *sorted(set(subdirs))]
    sort: Sort
    if head is not None:
        sort = CHANNEL
        simple.run([f"{url}{view}/" for view in (*head.variants, WHOLE)])
        if any(part.startswith(f"{CondaSection.NAME}/") for part in head.parts):
            conda.run(f"{url}{CondaSection.NAME}/", names)
        start = f"{LibtorchSection.NAME}/"
        zips.run(f"{url}{part}/" for part in head.parts if part.startswith(start))
    elif _has_repodata(fetcher, url):  # only one subdir is requested
        sort = CondaSection.NAME
        name = urlsplit(url).path.rstrip("/").rpartition("/")[2]
        conda.run(urljoin(url, "../"), dict.fromkeys([NOARCH, name]))
    elif there := _subdirs(fetcher, url, names):
        sort = CondaSection.NAME
        conda.run(url, there)
    elif fetcher.head(f"{url}{LATEST}").found:
        sort = LibtorchSection.NAME
        zips.run([url])
    else:
        sort = SimpleSection.NAME
        simple.run([url])
    findings.add_unused_allowances(redact_url(url))
    files = simple.files + conda.packages + zips.files
    return Audit(url=redact_url(url), sort=sort, projects=simple.projects, files=files)


def _subdirs(fetcher: Fetcher, url: str, names: Sequence[str]) -> list[str]:
    """Return the subdirs of a conda channel; none if it is no conda channel."""
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        has = pool.map(lambda name: _has_repodata(fetcher, f"{url}{name}/"), names)
        return [name for name, found in zip(names, has, strict=True) if found]


def _own_head(fetcher: Fetcher, url: str) -> Head | None:
    answer = fetcher.get(f"{url}{HEAD}")
    try:
        return msgspec.json.decode(answer.data, type=Head) if answer.found else None
    except UNDECODABLE:
        return None


def _has_repodata(fetcher: Fetcher, url: str) -> bool:
    return fetcher.head(f"{url}{REPODATA}").found or fetcher.head(f"{url}{PACKED}").found
