"""Install packages and environments from PyPI with uv.

uv gets the caller's environment: index, proxy and certificates are the user's.
"""

import hashlib
import os
import re
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path

from torchyard.errors import ConfigError, DataError, HostError
from torchyard.host.bubblewrap import confined
from torchyard.host.cache import cache_folder
from torchyard.host.files import list_data, read_data
from torchyard.host.http import explain_fetch
from torchyard.host.locks import locked
from torchyard.host.network_settings import fetching_environment
from torchyard.host.process import capture, own_program
from torchyard.host.snapshot import EPOCH
from torchyard.model.toolchain import is_pinned
from torchyard.model.values import Value
from torchyard.toolchain.atomic_dir import make_whole
from torchyard.toolchain.interpreters import Interpreter

_ENTRY = re.compile(
    r"(?P<name>[a-z0-9-]+)==(?P<version>[a-z0-9.]+)(\s+--hash=sha256:[0-9a-f]{64})+\s*"
)
_NAMED = re.compile(r"`([\w.-]+)[^`]*`")
_HASH = " --hash=sha256:"
_BACKEND = "backend"
"""The lock of the build requirements that `torchyard init` suggests."""
_INSTALL = ("pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:")
_VENV = ("venv", "--quiet", "--allow-existing", "--relocatable", "--no-project")


class Lock(Value, kw_only=True):
    """A lock file of `data/pins/`, with hashes of all files to install."""

    name: str
    text: str
    versions: dict[str, str]
    hashes: dict[str, str]
    """The options with hashes of a package's files, by `name==version`."""

    @property
    def stamp(self) -> str:
        """The stamp of a folder with its packages."""
        return f"{self.name} {self.digest}"

    @property
    def digest(self) -> str:
        """Its digest in an identity."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@cache
def read_lock(name: str) -> Lock:
    """Return a lock that is shipped with torchyard."""
    return parse_lock(name, read_data(f"pins/{name}.txt"))


def parse_lock(name: str, text: str) -> Lock:
    """Parse a lock; each package must have a version and hashes."""
    versions: dict[str, str] = {}
    hashes: dict[str, str] = {}
    for entry in text.replace("\\\n", " ").splitlines():
        found = _ENTRY.fullmatch(entry)
        if found is None:
            msg = f"the lock data/pins/{name}.txt has an entry without version or hash: `{entry}`"
            raise DataError(msg)
        versions[found["name"]] = found["version"]
        pin, *options = entry.split()
        hashes[pin] = " ".join(options)
    return Lock(name=name, text=text, versions=versions, hashes=hashes)


@cache
def locks() -> tuple[str, ...]:
    """Return the names of all locks."""
    return tuple(sorted(name.removesuffix(".txt") for name in list_data("pins")))


def install(lock: Lock, folder: Path, python: str) -> None:
    """Install the packages of a lock into a folder, atomically."""
    make_whole(folder, lock.stamp, lambda part: unpack(lock, part, python))


def unpack(lock: Lock, folder: Path, python: str) -> None:
    """Install the packages of a lock into an existing folder."""
    file = folder / f"{lock.name}.txt"
    file.write_text(lock.text, encoding="utf-8")
    where = ["--python", python, "--target", str(folder)]
    call_uv([*_INSTALL, *where, "--require-hashes", "-r", str(file)])
    _set_times(folder)


def make_environment(
    interpreter: Interpreter,
    requirements: Sequence[str],
    folder: Path,
    *,
    of_toolkit: Collection[str] = (),
    inherits: bool = False,
) -> None:
    """Create a relocatable Python environment with exactly these packages.

    Dependencies must be listed, else the same plan could give different packages. Files
    are verified by the hashes in the requirements, or in torchyard's own lock; if all have hashes,
    no file without one is installed. Wheels `of_toolkit` need not be complete: what one of them
    requires of another, the toolkit has. If it `inherits`, it also has what the interpreter has.
    """
    for requirement in requirements:  # of a spec from any source
        if not is_pinned(requirement):
            msg = f"`{requirement}` does not name one version of a package"
            raise ConfigError(msg, hint="name one version, such as cmake==3.31.10")
    names = sorted(map(_with_hashes, set(requirements)))

    def fill(part: Path) -> None:
        python = str(part / "bin" / "python")
        also = ["--system-site-packages"] if inherits else []
        call_uv([*_VENV, *also, "--prompt", "torchyard", "--python", interpreter.path, str(part)])
        _forget_version(part / "lib")
        if names:
            file = part / "requirements.txt"
            file.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
            strict = ["--require-hashes"] if all(_HASH in name for name in names) else []
            with _in_turn():  # uv would download the same wheel in two processes
                call_uv([*_INSTALL, "--python", python, *strict, "-r", str(file)])
            _check_complete(part, interpreter, of_toolkit)
        _set_times(part)

    make_whole(folder, " ".join([interpreter.path, interpreter.version, *names]), fill)


def _set_times(folder: Path) -> None:
    """Give all files the same fixed time.

    Otherwise an object of the core that includes a header of a package would look older than the
    header in another job's environment, and be compiled again.
    """
    for path in folder.rglob("*"):
        os.utime(path, (EPOCH, EPOCH), follow_symlinks=False)


def _in_turn() -> AbstractContextManager[object]:
    """Wait until no other process of this machine downloads packages."""
    folder = cache_folder("downloads")
    return locked(folder / "lock", wait=True) if folder else nullcontext()


def pinned_pip(requirements: Sequence[str]) -> list[str]:
    """Return the requirement of pip for users' environments; empty if it is required already."""
    if any(pin.startswith("pip==") for pin in requirements):
        return []
    return [f"{pin} {hashes}" for pin, hashes in read_lock("pip").hashes.items()]


def _with_hashes(requirement: str) -> str:
    """Return a requirement with hashes: its own, or those in torchyard's lock."""
    if _HASH in requirement:
        return requirement
    return f"{requirement} {read_lock(_BACKEND).hashes.get(requirement, '')}".rstrip()


def _forget_version(lib: Path) -> None:
    """Give site-packages the same path for every Python.

    CMake writes its own path into build commands, which must not differ between Pythons.
    """
    for folder in lib.glob("python3*"):
        folder.rename(lib / "python")
        folder.symlink_to("python")


def _check_complete(folder: Path, interpreter: Interpreter, of_toolkit: Collection[str]) -> None:
    """Check the dependencies in an environment; its packages can run code when Python starts."""
    base = Path(os.path.realpath(interpreter.path)).parent.parent
    argv = [own_program("uv"), "pip", "check", "--quiet", "--python", str(folder / "bin/python")]
    try:
        capture(confined(argv, cwd=folder, readable=[base / "bin", base / "lib"]), cwd=folder)
    except HostError as error:
        found = [line for line in str(error).splitlines() if line.startswith("The package")]
        if not found:
            raise
        gaps = [line for line in found if not {*_NAMED.findall(line)} <= {*of_toolkit}]
        if not gaps:
            return
        msg = f"the packages of the environment conflict: {' '.join(gaps)}"
        raise ConfigError(
            msg, hint="add missing packages to `requires` of [build], each as `name==version`"
        ) from error


def call_uv(arguments: Sequence[str]) -> None:
    """Run uv with the caller's settings; explain its errors in hints."""
    try:
        capture([own_program("uv"), *arguments], cwd=Path("/"), env=fetching_environment())
    except HostError as error:
        if "Hash mismatch" in str(error):
            hint = "do not build with it: the index has another file than the pinned one"
            raise HostError(str(error), hint=hint) from error
        if cause := explain_fetch(str(error)):
            raise cause from error
        if "No solution found" in str(error):
            hint = "is the version right, and does the index have its wheel for this Python?"
            raise HostError(str(error), hint=hint) from error
        raise
