"""Power cuts, simulated: records what programs do to files, and makes the disks that may remain.

`record` runs a program under strace. Each operation changes the files as programs see them, and a
sync makes some of it survive: `fsync` of a file its bytes, `fsync` of a directory the names in it.
`Recording.cut` makes the disk as it may be after a power cut at any operation: what was synced is
there, and everything else is there or not, each name and each file on its own.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from enum import StrEnum
from hashlib import sha256
from itertools import cycle, islice
from pathlib import Path
from random import Random
from typing import NamedTuple

from torchyard.host.process_id import boot_id

_WRITES = ("write", "pwrite64", "writev", "sendfile", "copy_file_range")
_CALLS = (
    *_WRITES,
    *("open", "openat", "creat", "truncate", "ftruncate", "fsync", "fdatasync"),
    *("rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat"),
    *("unlink", "unlinkat", "rmdir", "mkdir", "mkdirat"),
)
_TRACER = (
    *("strace", "-f", "-y", "-xx", "-qq", "--seccomp-bpf", "-s", str(1 << 24)),
    *("-e", "signal=none", "-e", f"trace={','.join(_CALLS)}"),
)
_LINE = re.compile(r"(\d+) +(?:<\.\.\. \w+ resumed>)?(.*)", re.DOTALL)
_CALL = re.compile(r"(\w+)\((.*)\) += (-?\d+)", re.DOTALL)
_WORD = re.compile(r'<((?:\\x[0-9a-f]{2})*)>(\(deleted\))?|"((?:\\x[0-9a-f]{2})*)"')
_UNFINISHED = " <unfinished ...>"

OTHER_BOOT = "00000000-0000-4000-8000-000000000000"
"""The recorded programs ran in another boot than those that run after the cut.

Claims are left as they are: those of another boot, which may be that of another machine, are waited
for, and that takes a minute.
"""


class Loss(StrEnum):
    """What becomes of that which was not synced."""

    ALL = "all is lost"
    BYTES = "names are kept, files are empty"
    ZEROS = "names and sizes are kept, bytes are zero"
    SOME = "each name and each file is kept, lost or half lost at random"


class Node:
    """A file, a link or a directory: as programs see it, and as it is on the disk."""

    def __init__(self, *, is_folder: bool = False, link: str = "") -> None:
        self.is_folder = is_folder
        self.link = link
        self.mode = 0o644
        self.data = b""
        self.synced_data: bytes | None = None
        self.names: dict[str, Node] = {}
        self.synced_names: dict[str, Node] = {}


class Operation(NamedTuple):
    """A system call that changes files or syncs them; `began` is where the call of a sync began."""

    call: str
    words: tuple[bytes, ...]
    text: str
    began: int


class Recording:
    """The operations of a program below a directory, and the files that were there before."""

    def __init__(self, root: Path, before: Node, operations: Sequence[Operation]) -> None:
        self.root = root
        self._before = before
        self._operations = operations

    def __len__(self) -> int:
        return len(self._operations)

    def without_syncs(self) -> "Recording":
        """Return what a program would have done that syncs nothing."""
        return Recording(
            self.root, self._before, [o for o in self._operations if o.call != "fsync"]
        )

    def some_cuts(self, count: int) -> Iterator[tuple[int, Loss]]:
        """Yield moments at equal distances, with one loss after the other."""
        for at, loss in zip(range(count), cycle(Loss), strict=False):
            yield (2 * at + 1) * len(self) // (2 * count), loss

    def all_cuts(self, seed: int) -> Iterator[tuple[int, Loss]]:
        """Yield the moments and losses that make different disks."""
        seen: set[str] = set()
        for number, disk in enumerate(self._disks()):
            for loss in Loss:
                name = _digest(self._remains(disk, loss, _dice(seed + number)))
                if name not in seen:
                    seen.add(name)
                    yield number, loss

    def cut(self, number: int, loss: Loss, seed: int) -> None:
        """Make the disk as it may be after a cut behind the operation with this number."""
        shutil.rmtree(self.root)
        disk = next(islice(self._disks(), number, None))
        _lay_out(self._remains(disk, loss, _dice(seed + number)), self.root)

    def _disks(self) -> Iterator[Node]:
        """Yield the files before each operation, and after the last; the next one changes them."""
        disk = _copy(self._before, {})
        pending: dict[int, tuple[Node, bytes, dict[str, Node]]] = {}
        yield disk
        for operation in self._operations:
            if operation.call == "began":
                node = _find(disk, self._path(operation.words[0]))
                if node is not None:
                    pending[operation.began] = (node, node.data, dict(node.names))
            elif operation.call != "fsync":
                self._apply(disk, operation)
            elif operation.began in pending:
                node, data, names = pending.pop(operation.began)
                node.synced_data, node.synced_names = data, names
            yield disk

    def _path(self, name: bytes) -> tuple[str, ...] | None:
        """Return a path below the root, or None if it is elsewhere."""
        path = Path(name.decode())
        return path.relative_to(self.root).parts if path.is_relative_to(self.root) else None

    def _apply(self, disk: Node, operation: Operation) -> None:
        """Change names, or a file."""
        path = self._path(operation.words[0])
        match operation.call:
            case "link":
                _put(disk, self._path(operation.words[1]), _find(disk, path))
            case "rename":
                _put(disk, self._path(operation.words[1]), _take(disk, path))
            case "symlink":
                link = Node(link=operation.words[0].decode())
                _put(disk, self._path(operation.words[1]), link)
            case "unlink" | "rmdir":
                _take(disk, path)
            case "mkdir":
                if _find(disk, path) is None:
                    _put(disk, path, Node(is_folder=True))
            case _:
                node = _find(disk, path)
                if node is not None:
                    _change(node, operation)
                elif operation.call == "open" and "O_CREAT" in operation.text:
                    _put(disk, path, Node())

    @staticmethod
    def _remains(disk: Node, loss: Loss, random: Random) -> "Node":
        """Return what may be left of all files."""
        if not disk.is_folder:
            left = Node(link=disk.link)
            left.mode = disk.mode
            left.data = _left(disk, loss, random)
            return left
        folder = Node(is_folder=True)
        names = disk.synced_names if loss is Loss.ALL else disk.names
        if loss is Loss.SOME:
            names = {}
            for name in sorted({*disk.names, *disk.synced_names}):
                node = random.choice((disk.names, disk.synced_names)).get(name)
                names |= {name: node} if node else {}
        folder.names = {
            name: Recording._remains(node, loss, random) for name, node in names.items()
        }
        return folder


def _change(file: Node, operation: Operation) -> None:
    call, words, text, _ = operation
    if call == "open":
        file.data = b"" if "O_TRUNC" in text else file.data
    elif call == "write":
        file.data += words[1] if b"/claims/" in words[0] else _earlier(words[1])
    elif call == "truncate":
        size = int(text.rpartition(",")[2])
        file.data = file.data[:size].ljust(size, b"\0")


def _dice(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - to be the same each time


def _earlier(data: bytes) -> bytes:
    """Return the bytes that a program of another boot would have written."""
    return data.replace(boot_id().encode(), OTHER_BOOT.encode())


def _left(file: Node, loss: Loss, random: Random) -> bytes:
    """Return what may be left of a file's bytes."""
    synced = file.synced_data or b""
    if file.synced_data == file.data:
        return file.data
    zeros = bytes(len(file.data))
    if loss is Loss.SOME:
        half = file.data[: len(file.data) // 2]
        return random.choice((synced, file.data, zeros, half, half.ljust(len(zeros), b"\0")))
    return zeros if loss is Loss.ZEROS else synced


def _find(disk: Node, path: tuple[str, ...] | None) -> Node | None:
    node: Node | None = disk
    for part in path if path is not None else ("", ""):
        node = None if node is None else node.names.get(part)
    return node


def _put(disk: Node, path: tuple[str, ...] | None, node: Node | None) -> None:
    """Give a file a name.

    Its directory is there, as the call succeeded: strace may write another thread's `mkdir` later.
    """
    if path and node is not None:
        folder = disk
        for part in path[:-1]:
            folder = folder.names.setdefault(part, Node(is_folder=True))
        folder.names[path[-1]] = node


def _take(disk: Node, path: tuple[str, ...] | None) -> Node | None:
    folder = _find(disk, path[:-1]) if path else None
    return folder.names.pop(path[-1], None) if path and folder is not None else None


def _copy(node: Node, known: dict[int, Node]) -> Node:
    """Copy files with everything that is synced; hard links stay the same file."""
    if id(node) not in known:
        new = known[id(node)] = Node(is_folder=node.is_folder, link=node.link)
        new.mode, new.data, new.synced_data = node.mode, node.data, node.synced_data
        new.names = {name: _copy(one, known) for name, one in node.names.items()}
        new.synced_names = {name: _copy(one, known) for name, one in node.synced_names.items()}
    return known[id(node)]


def _read(path: Path) -> Node:
    """Return the files below a directory, all of them synced."""
    if path.is_symlink():
        return Node(link=str(path.readlink()))
    node = Node(is_folder=path.is_dir())
    node.mode = path.stat().st_mode & 0o777
    if path.is_dir():
        node.names = {one.name: _read(one) for one in path.iterdir()}
        node.synced_names = dict(node.names)
    else:
        node.data = node.synced_data = path.read_bytes()
    return node


def _lay_out(node: Node, path: Path) -> None:
    if node.link:
        path.symlink_to(node.link)
    elif node.is_folder:
        path.mkdir()
        for name, one in node.names.items():
            _lay_out(one, path / name)
    else:
        path.write_bytes(node.data)
        path.chmod(node.mode)


def _digest(node: Node) -> str:
    parts = [f"{name}/{_digest(one)}" for name, one in sorted(node.names.items())]
    whole = "\n".join((node.link, str(node.is_folder), *parts)).encode() + node.data
    return sha256(whole).hexdigest()


def record(command: Sequence[str], root: Path, log: Path, cwd: Path) -> Recording:
    """Run a program; return what it and its children do below a directory."""
    before = _read(root)
    subprocess.run([*_TRACER, "-o", str(log), *command], check=True, cwd=cwd)
    recording = read_recording(log, root, before)
    log.unlink()
    return recording


def read_recording(log: Path, root: Path, before: Node) -> Recording:
    """Return what strace's log has about files below a directory."""
    inside = "".join(f"\\x{byte:02x}" for byte in str(root).encode())
    found = [one for one in _parse(log) if one.call == "began" or one.words]
    return Recording(root, before, [one for one in found if inside in one.text])


def _parse(log: Path) -> Iterator[Operation]:
    unfinished: dict[str, tuple[str, int]] = {}
    with log.open(encoding="ascii") as lines:
        for number, line in enumerate(lines):
            match = _LINE.match(line)
            assert match, line[:200]
            pid, text = match[1], match[2]
            began = number
            if text.rstrip("\n").endswith(_UNFINISHED):
                text = text.rstrip("\n").removesuffix(_UNFINISHED)
                unfinished[pid] = text, number
                if text.startswith(("fsync", "fdatasync")):
                    yield Operation("began", _words(text), text, number)
                continue
            if "resumed>" in line[:60]:
                start, began = unfinished.pop(pid)
                text = start + text
            elif text.startswith(("fsync", "fdatasync")):
                yield Operation("began", _words(text), text, number)
            call = _CALL.match(text)
            if call and int(call[3]) >= 0:
                yield _operation(call[1], call[2], began)


def _words(text: str) -> tuple[bytes, ...]:
    """Return the paths and strings of a call; files that have no name any more are left out."""
    return tuple(
        bytes.fromhex((handle or string).replace("\\x", ""))
        for handle, deleted, string in _WORD.findall(text)
        if not deleted
    )


def _operation(call: str, text: str, began: int) -> Operation:
    """Return a call in its simplest form: paths are complete, and then there are bytes."""
    words = _words(text)
    name = {"creat": "open", "fdatasync": "fsync", "ftruncate": "truncate", "renameat2": "rename"}
    kind = name.get(call, call.removesuffix("at"))
    if call == "creat":
        text += "O_CREAT|O_TRUNC"
    if call == "unlinkat" and "AT_REMOVEDIR" in text:
        kind = "rmdir"
    if call in ("openat", "unlinkat", "mkdirat"):
        words = (_join(*words[:2]),) if len(words) > 1 else ()
    elif call in ("renameat", "renameat2", "linkat"):
        words = (_join(*words[:2]), _join(*words[2:4])) if len(words) > 3 else ()
    elif call == "symlinkat":
        words = (words[0], _join(*words[1:3])) if len(words) > 2 else ()
    elif call in ("sendfile", "copy_file_range"):
        kind, words = "write", (*words[:1], b"bytes of another file") if words else ()
    elif call in _WRITES:
        kind, words = "write", (words[0], b"".join(words[1:])) if len(words) > 1 else ()
    return Operation(kind, words, text, began)


def _join(folder: bytes, name: bytes) -> bytes:
    return str(Path(folder.decode(), name.decode())).encode()
