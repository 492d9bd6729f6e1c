"""Checks of how the machine reaches package indexes, and of its clock."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from urllib.parse import unquote

from torchyard.doctor.bench import Bench
from torchyard.doctor.check import Seen, Trouble, machine_check
from torchyard.errors import ElsewhereError, TorchyardError
from torchyard.host.cache import cache_base, cache_folder
from torchyard.host.http import ask_index, redact_url
from torchyard.host.network_settings import NetworkSettings, network_settings
from torchyard.model.severity import Severity

_SKEW = 86400
"""The largest error of a clock, in seconds."""
_WHY = "requirements can't be fetched, unless uv's cache has them"


@machine_check("network", outside=True)
def network(bench: Bench) -> Iterator[Seen | Trouble]:
    """Indexes answer, with the proxy, certificates and passwords in the settings of pip and uv.

    The clock agrees with theirs, and is not before torchyard's installation.
    """
    installed = Path(__file__).stat().st_mtime
    yield from _skewed(max(time.time(), installed), "torchyard was installed at")
    if cache_base() is None:
        folder = cache_folder("uv")
        yield Seen(f"the home directory can't be written to: caches are in {folder or 'none'}")
    if not (bench.by_hand or bench.demand.compiles or bench.demand.pythons):
        return
    settings = network_settings()
    if settings.authorities and not Path(settings.authorities).is_file():
        what = f"there is no file `{settings.authorities}` with certificates of authorities"
        yield Trouble(what, "no server is trusted", "correct SSL_CERT_FILE, or `cert` in pip.conf")
    missing = [link for link in settings.links if _is_missing(link)]
    for link in missing:
        cure = "correct `find-links` in the settings of pip or uv"
        yield Trouble(f"there is no directory of wheels `{unquote(link[7:])}`", _WHY, cure)
    if settings.is_offline or not settings.indexes:
        links = [redact_url(link) for link in settings.links if link not in missing]
        yield Seen(f"no index is asked, but {', '.join(links) or 'none'}")
        return
    asked = [index for index in settings.indexes if index.startswith("http")]
    with ThreadPoolExecutor() as pool:
        for found in pool.map(lambda index: list(_ask(index, settings, bench)), asked):
            yield from found


def _is_missing(link: str) -> bool:
    return link.startswith("file:") and not Path(unquote(link[7:])).is_dir()


def _ask(index: str, settings: NetworkSettings, bench: Bench) -> Iterator[Seen | Trouble]:
    """Yield whether an index answers, and whether its clock agrees with this machine's."""
    proxy = redact_url(settings.proxy_for(index))
    through = f" through the proxy {proxy}" if proxy else ""
    try:
        date = ask_index(index).date
    except TorchyardError as error:
        passes = bench.by_hand or isinstance(error, ElsewhereError)
        severity = Severity.WARNING if passes else Severity.ERROR
        cure = error.diagnostics[0].hint or ""
        yield Trouble(f"{error}{through and f',{through}'}", _WHY, cure, severity)
        return
    yield Seen(f"{redact_url(index)} answers{through}")
    there = parsedate_to_datetime(date).timestamp() if date else time.time()
    yield from _skewed(there, f"that of {redact_url(index)} says")


def _skewed(there: float, what: str) -> Iterator[Trouble]:
    if abs(time.time() - there) > _SKEW:
        own, other = (datetime.fromtimestamp(t, UTC).date() for t in (time.time(), there))
        why = "certificates count as expired or not yet valid, and times in channels are wrong"
        problem = f"this machine's clock says {own}, and {what} {other}"
        yield Trouble(problem, why, f"sudo date -s @{there:.0f}", Severity.WARNING)
