"""Libraries from wheels in an environment, for compiling a project in it.

A torch for GPUs requires its toolkit's libraries as wheels. These have headers, which torch's own
headers include, but not the file names that linkers look for.
"""

from collections.abc import Iterator
from pathlib import Path

from torchyard.toolchain.variables import compose, search


def link_libraries(environment: Path, pattern: str) -> None:
    """Give libraries in an environment their linkers' names: libcudnn.so to libcudnn.so.9."""
    for folder in _folders(environment, pattern):
        for library in sorted(folder.glob("lib/lib*.so.*")):
            link = library.with_name(f"{library.name.partition('.so')[0]}.so")
            if not link.exists():
                link.symlink_to(library.name)


def search_variables(environment: Path, pattern: str, seen_as: str) -> dict[str, str]:
    """Return the variables that make CMake and linkers search libraries in an environment.

    Steps see the environment as `seen_as`.
    """
    env: dict[str, str] = {}
    for folder in _folders(environment, pattern):
        env = compose(env, search(f"{seen_as}/{folder.relative_to(environment)}"))
    return env


def _folders(environment: Path, pattern: str) -> Iterator[Path]:
    """Yield the folders in `site-packages` with libraries and their headers."""
    for folder in sorted(environment.glob(f"lib/python/site-packages/{pattern}")):
        if (folder / "include").is_dir() and (folder / "lib").is_dir():
            yield folder


def compiler_variables(environment: Path, pattern: str, links: Path) -> dict[str, str]:
    """Return the variables that let compilers and linkers find libraries in an environment.

    `pattern` is a glob for folders in `site-packages` with `include` and `lib`. `links` is
    a directory for links with linkers' names: `libcusparse.so` to libcusparse.so.12.
    """
    folders = sorted(environment.glob(f"lib/python3*/site-packages/{pattern}"))
    links.mkdir(parents=True, exist_ok=True)
    for library in sorted(path for folder in folders for path in folder.glob("lib/lib*.so*")):
        link = links / f"{library.name.partition('.so')[0]}.so"
        link.unlink(missing_ok=True)  # the last of several versions wins
        link.symlink_to(library)
    headers = [str(folder / "include") for folder in folders if (folder / "include").is_dir()]
    return {"CPATH": ":".join(headers), "LIBRARY_PATH": str(links)} if folders else {}
