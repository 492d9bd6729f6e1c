"""Libraries that wheels have brought into an environment, for the compilers of a project in it.

A torch for GPUs requires its toolkit's libraries as wheels. They have headers, which torch's own
headers include, but not the names that linkers look for.
"""

from pathlib import Path


def compiler_variables(environment: Path, pattern: str, links: Path) -> dict[str, str]:
    """Return the variables with which compilers and linkers find libraries in an environment.

    `pattern` is a glob for folders in its `site-packages` that have `include` and `lib`. `links` is
    a directory for the names that linkers look for: `libcusparse.so` for libcusparse.so.12.
    """
    folders = sorted(environment.glob(f"lib/python3*/site-packages/{pattern}"))
    links.mkdir(parents=True, exist_ok=True)
    for library in sorted(path for folder in folders for path in folder.glob("lib/lib*.so*")):
        link = links / f"{library.name.partition('.so')[0]}.so"
        link.unlink(missing_ok=True)  # the last of several versions counts
        link.symlink_to(library)
    headers = [str(folder / "include") for folder in folders if (folder / "include").is_dir()]
    return {"CPATH": ":".join(headers), "LIBRARY_PATH": str(links)} if folders else {}
