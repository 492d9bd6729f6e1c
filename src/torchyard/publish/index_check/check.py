"""The index check: finds out which sort of index an address has, and audits it from outside.

It reads only what installers read, also of torchyard's own channels.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated
from urllib.parse import urljoin, urlsplit

import msgspec

from torchyard.host.fetcher import Fetcher
from torchyard.host.http import CONNECTIONS, redact_url
from torchyard.index.conda.read import PACKED, REPODATA
from torchyard.index.conda.repodata import NOARCH
from torchyard.index.conda.section import CondaSection
from torchyard.index.entry import WHOLE
from torchyard.index.libtorch.section import LibtorchSection
from torchyard.index.sections import SECTIONS
from torchyard.index.simple.section import SimpleSection
from torchyard.model.values import UNDECODABLE, Value
from torchyard.publish.channel.head import HEAD, Head
from torchyard.publish.index_check.conda import CondaAudit
from torchyard.publish.index_check.findings import IndexFindings
from torchyard.publish.index_check.simple import Scope, SimpleAudit
from torchyard.publish.index_check.zips import LATEST, ZipAudit

CHANNEL = "channel"
Sort = Annotated[str, msgspec.Meta(extra_json_schema={"enum": sorted((CHANNEL, *SECTIONS))})]
"""A channel of torchyard's own, or the section of one that an index is like."""


class Audit(Value, kw_only=True):
    """Which index was audited, and how much of it."""

    url: str
    sort: Sort
    projects: int
    files: int


def audit(url: str, scope: Scope, subdirs: Iterable[str], findings: IndexFindings) -> Audit:
    """Audit the index at an address; `subdirs` are those that a conda channel may have.

    What a channel of torchyard's own declares to come from elsewhere is taken from its head. It
    is read without a question.
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
    elif _has_repodata(fetcher, url):  # only one subdir is asked for
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
