"""An outsider's audit of an index: which sort of index it is, and what is wrong with it.

It reads what installers read, and believes nothing else: not even of a channel of our own.
"""

from collections.abc import Iterable, Sequence
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
from torchyard.publish.audit_zips import LATEST, ZipAudit
from torchyard.publish.head import HEAD, Head

Sort = Literal["channel", "conda", "libtorch", "simple"]


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
    zips = ZipAudit(reach, scope, findings)
    names = [NOARCH, *sorted(set(subdirs))]
    sort: Sort
    if (head := _own_head(reach, url)) is not None:
        sort = "channel"
        simple.run([f"{url}{view}/" for view in (*head.variants, WHOLE)])
        if any(part.startswith("conda/") for part in head.parts):
            conda.run(f"{url}conda/", names)
        zips.run(f"{url}{part}/" for part in head.parts if part.startswith("libtorch/"))
    elif _has_repodata(reach, url):  # only one subdir is asked for
        sort = "conda"
        name = urlsplit(url).path.rstrip("/").rpartition("/")[2]
        conda.run(urljoin(url, "../"), dict.fromkeys([NOARCH, name]))
    elif there := _subdirs(reach, url, names):
        sort = "conda"
        conda.run(url, there)
    elif reach.head(f"{url}{LATEST}").found:
        sort = "libtorch"
        zips.run([url])
    else:
        sort = "simple"
        simple.run([url])
    files = simple.files + conda.packages + zips.files
    return Audit(url=shown(url), sort=sort, projects=simple.projects, files=files)


def _subdirs(reach: Reach, url: str, names: Sequence[str]) -> list[str]:
    """Those that a conda channel has, if it is one."""
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        has = pool.map(lambda name: _has_repodata(reach, f"{url}{name}/"), names)
        return [name for name, found in zip(names, has, strict=True) if found]


def _own_head(reach: Reach, url: str) -> Head | None:
    answer = reach.get(f"{url}{HEAD}")
    try:
        return msgspec.json.decode(answer.data, type=Head) if answer.found else None
    except (msgspec.DecodeError, RecursionError):
        return None


def _has_repodata(reach: Reach, url: str) -> bool:
    return reach.head(f"{url}{REPODATA}").found or reach.head(f"{url}{PACKED}").found
