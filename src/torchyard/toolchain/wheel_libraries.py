"""Libraries from wheels in an environment, for compiling a project in it.

A torch for GPUs requires its toolkit's libraries as wheels. These have headers, which torch's own
headers include, but not the file names that linkers look for.
"""

from pathlib import Path


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
