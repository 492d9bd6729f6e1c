"""An outsider's audit of an index: which sort of index it is, and what is wrong with it.

It reads what installers read, and believes nothing else: not even of a channel of our own.
"""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Literal
from urllib.parse import urljoin, urlsplit

import msgspec

from torchyard.host.http import CONNECTIONS, shown
from torchyard.host.reach import Reach
from torchyard.index.entry import WHOLE
from torchyard.index.repodata import NOARCH
from torchyard.model.values import Value
from torchyard.publish.audit_conda import PACKED, REPODATA, CondaAudit
from torchyard.publish.audit_rules import Findings
from torchyard.publish.audit_simple import Scope, SimpleAudit
from torchyard.publish.head import HEAD, Head

Sort = Literal["channel", "conda", "simple"]


class Audit(Value, kw_only=True):
    """What was looked at, and what was found."""

    url: str
    sort: Sort
    projects: int
    files: int


def audit(url: str, scope: Scope, subdirs: Iterable[str], findings: Findings) -> Audit:
    """Look at the index at an address; `subdirs` are those that a conda channel may have."""
    reach = Reach(url)
    simple = SimpleAudit(reach, scope, findings)
    conda = CondaAudit(reach, scope, findings)
    names = [NOARCH, *sorted(set(subdirs))]
    head = _own_head(reach, url)
    if head is not None:
        simple.run([f"{url}{view}/" for view in (*head.variants, WHOLE)])
        if any(part.startswith("conda/") for part in head.parts):
            conda.run(f"{url}conda/", names)
        return _audit(url, "channel", simple, conda)
    if _has_repodata(reach, url):  # only one subdir is asked for
        name = urlsplit(url).path.rstrip("/").rpartition("/")[2]
        conda.run(urljoin(url, "../"), dict.fromkeys([NOARCH, name]))
        return _audit(url, "conda", simple, conda)
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        has = pool.map(lambda name: _has_repodata(reach, f"{url}{name}/"), names)
        there = [name for name, found in zip(names, has, strict=True) if found]
    if there:
        conda.run(url, there)
        return _audit(url, "conda", simple, conda)
    simple.run([url])
    return _audit(url, "simple", simple, conda)


def _audit(url: str, sort: Sort, simple: SimpleAudit, conda: CondaAudit) -> Audit:
    files = simple.files + conda.packages
    return Audit(url=shown(url), sort=sort, projects=simple.projects, files=files)


def _own_head(reach: Reach, url: str) -> Head | None:
    answer = reach.get(f"{url}{HEAD}")
    try:
        return msgspec.json.decode(answer.data, type=Head) if answer.found else None
    except (msgspec.DecodeError, RecursionError):
        return None


def _has_repodata(reach: Reach, url: str) -> bool:
    return reach.head(f"{url}{REPODATA}").found or reach.head(f"{url}{PACKED}").found
