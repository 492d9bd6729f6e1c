"""Libraries for optional parts of torch, such as cuDNN: directories and versions."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from torchyard.compute.table import FeatureFiles

_FOLDERS = ("lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu")
_INCLUDES = ("include", "include/x86_64-linux-gnu", "include/aarch64-linux-gnu")

SYSTEM_PREFIXES = (Path("/usr/local"), Path("/usr"))


class FoundFeature(NamedTuple):
    """A library, and the version in its headers."""

    prefix: Path
    library: Path
    version: str


def find_feature(feature: FeatureFiles, prefixes: Iterable[Path]) -> FoundFeature | None:
    """Return the library from the first directory that has it with its headers."""
    for prefix in prefixes:
        headers = (prefix / folder / name for folder in _INCLUDES for name in feature.headers)
        header = next(filter(Path.is_file, headers), None)
        library = _library(prefix, feature.libraries)
        if header is not None and library is not None:
            return FoundFeature(prefix, library, _version(header, feature.macros))
    return None


def system_libraries(features: Mapping[str, FeatureFiles], root: str) -> dict[str, str]:
    """Return the identities of libraries in or beside the system's toolkit, by name."""
    prefixes = (Path(root), *SYSTEM_PREFIXES)
    found = {name: find_feature(feature, prefixes) for name, feature in features.items()}
    return {n: f"{n} {library.version} system" for n, library in found.items() if library}


def _library(prefix: Path, names: Iterable[str]) -> Path | None:
    for name in names:
        for folder in _FOLDERS:
            found = sorted((prefix / folder).glob(f"{name}*"), key=lambda path: len(path.name))
            if found:
                return found[0]
    return None


def _version(header: Path, macros: tuple[str, ...]) -> str:
    text = header.read_text(encoding="utf-8", errors="replace")
    found = [re.search(rf"#\s*define\s+{macro}\s+(\d+)", text) for macro in macros]
    return ".".join(match[1] for match in found if match)
