from collections.abc import Mapping, Sequence

from buildbot.master import _Reactor
from twisted.internet.defer import Deferred

def run_process(
    reactor: _Reactor,
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    workdir: str | None = None,
    collect_stdout: bool = True,
    collect_stderr: bool = True,
) -> Deferred[tuple[int, bytes, bytes]]: ...
