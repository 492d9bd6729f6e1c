"""A root: a directory with a complete system, whose compilers, Pythons and libraries are used.

torchyard inspects a root from within: it runs itself there, by bubblewrap, with its own Python from
outside, or with one of the same version in an image's /opt/python. So the code that finds and
installs toolchains is the same with and without a root.
"""

import hashlib
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import msgspec

from torchyard.errors import HostError, TorchyardError, all_errors
from torchyard.host.keyring import leave_session_keyring
from torchyard.host.network_settings import (
    installer_cache,
    installer_files,
    installer_variables,
    linked_folders,
    local_paths,
)
from torchyard.host.process import OWN_PREFIX, capture
from torchyard.host.system_view import (
    NAME_SERVERS,
    ROOT_MARK,
    isolated,
    own_paths,
    parts_of_root,
    read_only,
    system_view,
)
from torchyard.host.untrusted_tree import TreeEntry, UntrustedTree
from torchyard.model.step import OWN
from torchyard.model.values import UNDECODABLE, Value
from torchyard.toolchain.variables import COMPILER, SYSTEM_PATH

FOLDERS = "/mnt/work"
"""The path of this machine's directories in a root."""

_VENVS = "opt/torchyard"
"""The path of environments for an unpacked image's Pythons, which see our packages."""

_LINKED = "usr/local/bin"
_SETTINGS = "/mnt/settings"
_CACHE = "/mnt/cache"
_PYTHON = re.compile(r"opt/python/cp3\d+-cp3(\d+t?)")
_DPKG = "var/lib/dpkg/status"
_RPM = ("rpm", "-qa", "--qf", "%{NAME} %{VERSION}-%{RELEASE} %{ARCH}\n")
_FIELD = re.compile(r"^(Package|Version|Architecture|Status): (.*)$", re.MULTILINE)
_NAMED = ("Package", "Version", "Architecture")
_DIGITS = 16
_MOST_LINKS = 40
_LONGEST = 1 << 26


class Answer(Value, kw_only=True):
    """The output of torchyard in a root: a value as JSON, or an error."""

    value: msgspec.Raw = msgspec.Raw(b"null")
    error: str = ""
    what: str = ""
    hint: str | None = None
    reason: str = ""

    def fail(self) -> NoReturn:
        """Raise the error."""
        kinds = {kind.__name__: kind for kind in all_errors()}
        raise kinds.get(self.error, HostError)(self.what, hint=self.hint, reason=self.reason)


def answer_with(find: Callable[[], object]) -> bytes:
    """Return the answer of a function, for the process outside of the root."""
    try:
        return msgspec.json.encode(Answer(value=msgspec.Raw(msgspec.json.encode(find()))))
    except TorchyardError as error:
        first = error.diagnostics[0]
        name = type(error).__name__
        answer = Answer(error=name, what=first.what, hint=first.hint, reason=error.reason)
        return msgspec.json.encode(answer)


def ask_in_root(
    root: str, words: Sequence[str], *, folder: Path | None = None, network: bool = False
) -> msgspec.Raw:
    """Run `torchyard tool` in a root, and return its answer.

    It can write to the folder, which it sees below `FOLDERS`.
    """
    command = [word.replace("{self}", own_python(root)) for word in OWN]
    is_ours = own_python(root) == sys.executable
    for path in own_paths() if is_ours else (sys.prefix, str(Path(__file__).parents[2])):
        if is_hidden_by(path, root):
            msg = f"torchyard is installed in {path}, which the root `{root}` hides"
            hint = "install it with a Python of uv or pyenv: `uv tool install --managed-python`"
            raise HostError(msg, hint=hint)
    try:
        output = run_in_root(root, [*command, "tool", *words], folder=folder, network=network)
        answer = msgspec.json.decode(output, type=Answer)
    except HostError as error:
        raise _unstartable(root, str(error)) from error
    except UNDECODABLE as error:
        msg = f"torchyard does not run in the root `{root}`: {error}"
        raise HostError(msg) from error
    if answer.error:
        answer.fail()
    return answer.value


def run_in_root(
    root: str, argv: Sequence[str], *, folder: Path | None = None, network: bool = False
) -> str:
    """Run a program in a root, and return its output."""
    check_root(root)
    leave_session_keyring()
    bwrap = [*isolated(), *system_view(root), *own_view(root)]
    env = {"PATH": SYSTEM_PATH, "HOME": "/tmp", "LANG": "C.UTF-8"} | ROOT_MARK  # noqa: S108 - its own
    where = "/mnt"
    if folder is not None:
        where = f"{FOLDERS}/{folder.name}"
        bwrap += ["--bind", str(folder), where]
    if network:
        settings, variables = _installer_settings()
        bwrap += ["--share-net", *name_servers(root), *settings]
        env |= variables
    words = [*bwrap, "--chdir", where, "--", *argv]
    try:
        return capture(words, cwd=Path("/"), env=env)
    except HostError as error:
        raise HostError(str(error).replace(" ".join(words), " ".join(argv))) from error


def check_root(root: str, name: str = "") -> None:
    """Refuse a directory without a system; `name` is the archive or image that it comes from."""
    usr = Path(root, "usr")
    if usr.is_symlink() or not usr.is_dir():
        msg = f"`{name or root}` is not a root: it has no /usr"
        raise HostError(msg, hint="create one with `torchyard toolchain root` or debootstrap")


def is_hidden_by(path: str, root: str) -> bool:
    """Return whether a root has the top directory of a path of this machine."""
    return Path(path).parts[1] in {top.name for top in parts_of_root(root)}


def own_view(root: str) -> list[str]:
    """Return bwrap's options that show torchyard and its Python in a root."""
    shown = (path for path in own_paths() if not is_hidden_by(path, root))
    return [*read_only(shown, root=root), "--symlink", sys.prefix, OWN_PREFIX]


def own_python(root: str) -> str:
    """Return the Python that runs torchyard in a root: the root's if it has the same version."""
    program = f"{_VENVS}/cp{sys.version_info[0]}{sys.version_info[1]}{sys.abiflags}/bin/python"
    return f"/{program}" if Path(root, program).is_symlink() else sys.executable


def add_environments(tree: UntrustedTree) -> None:
    """Create an environment for each Python in an image's /opt/python, which sees our packages."""
    entries: list[TreeEntry] = []
    with suppress(HostError):  # there is no such directory
        entries = tree.entries("opt/python")
    for entry in entries:
        found = _PYTHON.fullmatch(entry.path)
        if found:
            folder, packages = f"{_VENVS}/cp3{found[1]}", f"lib/python3.{found[1]}/site-packages"
            tree.make_directory(f"{folder}/bin")
            tree.make_directory(f"{folder}/{packages}".rpartition("/")[0])
            tree.create_link(f"{folder}/bin/python", f"/{entry.path}/bin/python3")
            tree.create_link(f"{folder}/{packages}", f"{OWN_PREFIX}/{packages}")
            with tree.create_file(f"{folder}/pyvenv.cfg") as file:
                file.write(f"home = /{entry.path}/bin\n".encode())


def add_compilers(tree: UntrustedTree, path: Sequence[str]) -> None:
    """Link an image's programs beside a compiler that is on its PATH, but not on ours."""
    for folder in (name.strip("/") for name in path if name not in SYSTEM_PATH.split(":")):
        with suppress(HostError):  # there is no such directory
            names = [entry.path.rpartition("/")[2] for entry in tree.entries(folder)]
            for name in names if COMPILER in names else ():
                tree.make_directory(_LINKED)
                if tree.find(f"{_LINKED}/{name}") is None:
                    tree.create_link(f"{_LINKED}/{name}", f"/{folder}/{name}")


def name_servers(root: str) -> list[str]:
    """Return bwrap's options that give a root this machine's name servers."""
    if Path(root, NAME_SERVERS.lstrip("/")).exists():
        return ["--ro-bind", NAME_SERVERS, NAME_SERVERS]
    return []


def identify_root(root: str) -> str:
    """Return the identity of a root: its system, and a digest of its packages' versions."""
    check_root(root)
    packages = sorted(packages_in(root))
    if not packages:
        msg = f"the content of the root `{root}` is unknown: it has no packages of dpkg or rpm"
        raise HostError(msg, hint="create one with `torchyard toolchain root`")
    digest = hashlib.sha256("\n".join(packages).encode()).hexdigest()
    return f"{_release(root)}, {len(packages)} packages sha256:{digest[:_DIGITS]}"


def packages_in(root: str) -> Iterator[str]:
    """Yield name, version and architecture of each package, and the Pythons beside them."""
    if status := _text(inside(root, _DPKG)):
        for section in status.split("\n\n"):
            fields = dict(_FIELD.findall(section))
            if fields.get("Status", "").endswith(" installed"):
                yield " ".join(
                    fields.get(name, "") for name in ("Package", "Version", "Architecture")
                )
    elif inside(root, "var/lib/rpm").is_dir():
        words = [*isolated(), *system_view(root), "--", *_RPM]
        yield from capture(words, cwd=Path("/"), env={"PATH": SYSTEM_PATH}).splitlines()
    for python in sorted(inside(root, "opt/python").glob("*")):
        include = f"opt/python/{python.name}/include"
        for folder in sorted(inside(root, include).glob("*")):
            header = _text(inside(root, f"{include}/{folder.name}/patchlevel.h"))
            found = re.search(r'#define PY_VERSION\s+"(.*)"', header)
            if found:
                yield f"{python.name} {found[1]}"


def inside(root: str, name: str) -> Path:
    """Return the path of a file in a root, following links as programs in the root do.

    Followed by the machine itself, they could lead out of the root.
    """
    waiting, found, links = name.split("/")[::-1], Path(), 0
    while waiting:
        word = waiting.pop()
        path = Path(root, found, word)
        if word == "..":
            found = found.parent
        elif path.is_symlink():
            links += 1
            target = str(path.readlink()) if links < _MOST_LINKS else ""  # circular links
            found = Path() if target.startswith("/") else found
            waiting += target.split("/")[::-1]
        elif word:
            found /= word
    return Path(root, found)


def _text(path: Path) -> str:
    """Return the beginning of a regular file, longer than such files are; else empty."""
    if path.is_symlink() or not path.is_file():
        return ""
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(_LONGEST)


def _release(root: str) -> str:
    """Return the name of a root's system, such as `debian 13`."""
    text = _text(inside(root, "etc/os-release"))
    fields = dict(re.findall(r'^(ID|VERSION_ID)="?([^"\n]*)', text, re.MULTILINE))
    return " ".join(filter(None, (fields.get("ID", "linux"), fields.get("VERSION_ID", ""))))


def _installer_settings() -> tuple[list[str], dict[str, str]]:
    """Return bwrap's options that show the caller's installer settings, and their variables."""
    env = {name: text for name, text in installer_variables().items() if name != "PATH"}
    env = {name: str(path) for name, path in installer_files()} | env
    bwrap: list[str] = []
    shown: dict[str, str] = {}
    for word, path in local_paths(env.values()):
        if word not in shown:
            folder = f"{_SETTINGS}/{len(shown)}"
            target = f"{folder}/{path.name}"
            shown[word] = f"file://{target}" if word.startswith("file:") else target
            for part in (path, *linked_folders(path)):
                bwrap += ["--ro-bind", str(part), f"{folder}/{part.name}"]
    for name, text in env.items():
        words = shown.get(text) or re.sub(r"[^\s,]+", lambda m: shown.get(m[0], m[0]), text)
        env[name] = words
    if cache := installer_cache("uv"):
        bwrap += ["--bind", str(cache), _CACHE]
        env |= {"UV_CACHE_DIR": _CACHE, "UV_LINK_MODE": "copy"}
    return bwrap, env


def _unstartable(root: str, output: str) -> HostError:
    if "GLIBC_" in output:
        msg = f"torchyard's Python needs a newer C library than the root `{root}` has"
        hint = "install torchyard with uv's Python, which runs everywhere: `uv tool install`"
        return HostError(f"{msg}: {output}", hint=hint)
    return HostError(f"torchyard does not run in the root `{root}`: {output}")
