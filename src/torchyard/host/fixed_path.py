"""A directory at another path without namespaces, for containers that forbid them.

A small C program, `data/programs/fixed_path.c`, traces other programs and replaces paths. The
compiler of the jobs compiles it, too.
"""

import hashlib
import os
import platform
import shutil
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from torchyard.errors import HostError
from torchyard.host.cache import runnable_folder
from torchyard.host.files import read_data
from torchyard.host.machine import glibc_version
from torchyard.host.process import capture

_SOURCE = "programs/fixed_path.c"
_COMPILERS = ("cc", "gcc", "clang")
_SEEN = "/mnt/torchyard-seen"


@cache
def fixed_path_program(folder: Path) -> str:
    """Return the program that runs others with fixed paths; compile it into the folder once.

    It is compiled again if it does not start: images with different libraries may share the folder.

    Raises:
        HostError: It can't be compiled, or does not work here.
    """
    source = read_data(_SOURCE)
    named = hashlib.sha256(f"{source} {platform.machine()} {glibc_version()}".encode()).hexdigest()
    program = folder / f"fixed-path-{named[:12]}"
    if _fault(program, folder):
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".", dir=folder) as scratch:
            _compile(source, Path(scratch))
            Path(scratch, "program").replace(program)
        if fault := _fault(program, folder):
            raise HostError(fault)
    return str(program)


def _fault(program: Path, folder: Path) -> str:
    """Return why the program can't show a directory at another path, or ""."""
    words = [str(program), "--bind", str(folder), _SEEN, "--chdir", _SEEN, "--", "pwd"]
    try:
        output = capture(words, cwd=folder, env={"PATH": os.defpath})
    except (HostError, OSError) as error:
        return str(error).replace(" ".join(words), program.name)
    works = output.strip() == _SEEN and Path(_SEEN).parent.is_dir()
    return "" if works else f"`{program}` shows {folder} as `{output.strip()}`"


def _compile(source: str, scratch: Path) -> None:
    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    if compiler is None:
        msg = f"there is no C compiler: none of {', '.join(_COMPILERS)} is on PATH"
        raise HostError(msg)
    (scratch / "program.c").write_text(source, encoding="utf-8")
    env = {"PATH": f"{os.environ.get('PATH', '')}:{os.defpath}", "TMPDIR": str(scratch)}
    capture([compiler, "-O2", "-o", "program", "program.c"], cwd=scratch, env=env)


def fixed_path_fault(folder: Path) -> str:
    """Return why programs can't be run with fixed paths here, or ""."""
    try:
        if folder.is_dir():
            fixed_path_program(folder)
        else:  # do not create a folder just to find out
            with TemporaryDirectory(dir=runnable_folder()) as scratch:
                fixed_path_program(Path(scratch))
    except (HostError, OSError) as error:
        return str(error)
    return ""


def move_links(folder: Path, paths: Mapping[str, str]) -> None:
    """Change the targets of absolute links below a folder, by the longest matching path."""
    for link in _links(folder):
        target = os.readlink(link)  # noqa: PTH115 - unchanged
        fitting = (old for old in paths if f"{target}/".startswith(f"{old}/"))
        if old := max(fitting, key=len, default=""):
            link.unlink()
            link.symlink_to(paths[old] + target[len(old) :])


def _links(folder: Path) -> Iterator[Path]:
    """Yield the symbolic links in all readable directories, at any depth."""
    waiting = [str(folder)]
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except OSError:
            continue
        for entry in entries:
            if entry.is_symlink():
                yield Path(entry)
            elif entry.is_dir():
                waiting.append(entry.path)
