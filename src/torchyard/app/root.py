"""Make a root: a directory with a system to build in."""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from torchyard.errors import HostError
from torchyard.host.own_files import WRITTEN
from torchyard.toolchain.debian_root import RootRequest, add_python, lock_of, make_debian_root
from torchyard.toolchain.interpreters import interpreter_for
from torchyard.toolchain.root import identify_root, packages_in


def make_root(
    request: RootRequest,
    to: Path,
    *,
    pythons: Sequence[str] = (),
    lock: Path | None = None,
    say: Callable[[str], object] = lambda _: None,
) -> str:
    """Make a root of Debian, and return its identity.

    If the lock exists, the root gets exactly its packages; else it is written.
    """
    added = [interpreter_for(tag) for tag in pythons]
    if lock is not None and lock.exists():
        lines = lock.read_text(encoding="utf-8").splitlines()
        exactly = tuple(line for line in lines if line and not line.startswith("#"))
        request = msgspec.structs.replace(request, exactly=exactly)
    make_debian_root(request, to, say)
    found = lock_of(packages_in(str(to)))
    if request.exactly and found != tuple(sorted(request.exactly)):
        wrong = sorted(set(found) ^ set(request.exactly))
        msg = f"the root has other packages than the lock: {' '.join(wrong[:5])}"
        raise HostError(msg, hint="the archive has newer ones: remove the lock, and make it again")
    if lock is not None and not lock.exists():
        text = "".join(f"{line}\n" for line in (f"# {WRITTEN}", *found))
        lock.write_text(text, encoding="utf-8")
    for python in added:
        say(f"adding Python {python.version}")
        add_python(to, python)
    return identify_root(str(to))
