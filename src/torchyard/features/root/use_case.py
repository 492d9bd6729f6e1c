"""Make a root: a directory with a system to build in."""

import re
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

from torchyard.compute.registry import compute_platforms
from torchyard.compute.table import DebianPackages
from torchyard.errors import HostError, UsageError
from torchyard.host.own_files import WRITTEN
from torchyard.toolchain.debian_root import RootRequest, add_python, lock_of, make_debian_root
from torchyard.toolchain.interpreters import interpreter_for
from torchyard.toolchain.root import identify_root, packages_in
from torchyard.workspace.progress import ignore_line


def make_root(
    suite: str,
    to: str,
    *,
    toolkits: Sequence[str] = (),
    components: Sequence[str] = (),
    packages: Sequence[str] = (),
    build_dep: Sequence[str] = (),
    pythons: Sequence[str] = (),
    lock: str | None = None,
    mirror: str = "",
    expired: bool = False,
    on_line: Callable[[str], object] = ignore_line,
) -> str:
    """Make a root of Debian, and return its identity.

    If the lock exists, the root gets exactly its packages; otherwise it is written.

    Args:
        suite: The suite of Debian, such as `trixie`.
        to: The directory to make.
        toolkits: Compute platforms whose toolkits are installed, such as `cuda`.
        components: Components of the archive besides `main`, such as `non-free`.
        packages: Names of packages to install.
        build_dep: Source packages whose build dependencies are installed.
        pythons: Pythons of this machine to copy, such as cp312.
        lock: The file with the versions of all packages.
        mirror: The mirror of Debian to take packages from.
        expired: Take lists of packages that are out of date, as those of snapshots are.
        on_line: Called with progress.
    """
    for what, names in (("suite", [suite]), ("component", components)):
        for name in names:
            if not re.fullmatch(r"[a-z][\w-]*", name):
                msg = f"`{name}` is not a {what} of Debian"
                raise UsageError(msg, hint="a suite is `trixie`, a component `non-free`")
    wanted = [_toolkit_packages(name) for name in toolkits]
    added, folder = [interpreter_for(tag) for tag in pythons], Path(to).absolute()
    path = Path(lock) if lock else None
    lines = path.read_text(encoding="utf-8").splitlines() if path and path.exists() else []
    exactly = tuple(sorted(line for line in lines if line and not line.startswith("#")))
    request = RootRequest(
        suite=suite,
        components=tuple(dict.fromkeys(chain(components, *(one.components for one in wanted)))),
        packages=tuple(dict.fromkeys(chain(packages, *(one.packages for one in wanted)))),
        build_dep=tuple(build_dep),
        exactly=exactly,
        alone=tuple(dict.fromkeys(chain.from_iterable(one.alone for one in wanted))),
        mirror=mirror,
        expired=expired,
    )
    make_debian_root(request, folder, on_line)
    found = lock_of(packages_in(str(folder)))
    if exactly and found != exactly:
        wrong = sorted(set(found) ^ set(exactly))
        msg = f"the root has other packages than the lock: {' '.join(wrong[:5])}"
        raise HostError(msg, hint="the archive has newer ones: remove the lock, and make it again")
    if path is not None and not path.exists():
        text = "".join(f"{line}\n" for line in (f"# {WRITTEN}", *found))
        path.write_text(text, encoding="utf-8")
    for python in added:
        on_line(f"adding Python {python.version}")
        add_python(folder, python)
    return identify_root(str(folder))


def _toolkit_packages(name: str) -> DebianPackages:
    found = {p.name: p.table().machine.debian for p in compute_platforms(plug_ins=True)}
    offered = {name: debian for name, debian in found.items() if debian.packages}
    if name not in offered:
        msg = f"there is no list of packages for `{name}`"
        raise UsageError(msg, hint=f"one of {', '.join(sorted(offered))}; --package names others")
    return offered[name]
