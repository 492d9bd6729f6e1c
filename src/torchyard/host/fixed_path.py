"""A directory at another path without namespaces, for containers that allow none.

A small program in C traces what it runs, and replaces paths: `data/programs/fixed_path.c`. Whatever
compiles a job compiles it, too.
"""

import hashlib
import os
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from torchyard.errors import HostError
from torchyard.host.cache import runnable_folder
from torchyard.host.files import read_data
from torchyard.host.process import capture

_SOURCE = "programs/fixed_path.c"
_COMPILERS = ("cc", "gcc", "clang")
_SEEN = "/mnt/torchyard-seen"


@cache
def fixed_path_program(folder: Path) -> str:
    """Return the program that runs others with fixed paths; it is compiled into the folder once.

    Raises:
        HostError: It can't be compiled, or does not work here.
    """
    source = read_data(_SOURCE)
    program = folder / f"fixed-path-{hashlib.sha256(source.encode()).hexdigest()[:12]}"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".", dir=folder) as scratch:
            _compile(source, Path(scratch))
            Path(scratch, "program").replace(program)
    bind = ("--bind", str(folder), _SEEN, "--chdir", _SEEN)
    said = capture([str(program), *bind, "--", "pwd"], cwd=folder, env={"PATH": os.defpath})
    if said.strip() != _SEEN or not Path(_SEEN).parent.is_dir():
        msg = f"`{program}` shows {folder} as `{said.strip()}`"
        raise HostError(msg)
    return str(program)


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
        else:  # nothing is made just to find out
            with TemporaryDirectory(dir=runnable_folder()) as scratch:
                fixed_path_program(Path(scratch))
    except (HostError, OSError) as error:
        return str(error)
    return ""


def move_links(folder: Path, paths: Mapping[str, str]) -> None:
    """Let absolute symbolic links below a folder lead to other paths, by the longest that fits."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_symlink():
                target = os.readlink(entry)  # noqa: PTH115 - as it is there
                fitting = (old for old in paths if f"{target}/".startswith(f"{old}/"))
                if old := max(fitting, key=len, default=""):
                    Path(entry).unlink()
                    Path(entry).symlink_to(paths[old] + target[len(old) :])
            elif entry.is_dir():
                move_links(Path(entry), paths)
