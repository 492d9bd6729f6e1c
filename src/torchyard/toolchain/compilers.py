"""The C and C++ compilers of this machine, and the programs that determine their output."""

import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

from torchyard.errors import HostError
from torchyard.host.decisions import decided
from torchyard.host.git import is_checkout
from torchyard.host.process import capture
from torchyard.model.values import Value
from torchyard.model.version import version_numbers
from torchyard.toolchain.digests import Digests
from torchyard.toolchain.variables import SYSTEM_PATH

Kind = Literal["gcc", "clang"]

_PARTS: dict[Kind, tuple[str, ...]] = {
    "gcc": ("cc1", "cc1plus", "collect2", "lto1", "lto-wrapper", "as", "ld"),
    "clang": ("ld", "ld.lld"),
}
_PLUS = {"gcc": "g++", "clang": "clang++", "cc": "c++"}
_LISTED = re.compile(r"(gcc|clang)(-\d+)?")
_NAME = re.compile(r"(?P<before>.*?)(?P<name>gcc|clang|cc)(?P<after>-\d+(\.\d+)*)?")


class Compiler(Value, kw_only=True):
    """A C and C++ compiler."""

    kind: Kind
    cc: str
    cxx: str
    version: str
    digest: str

    @property
    def identity(self) -> str:
        """Kind, version and digest, independent of its location."""
        return f"{self.kind} {self.version} sha256:{self.digest[:16]}"

    def query(self, *arguments: str) -> str:
        """Return its output for these arguments."""
        return program_output(self.cc, *arguments)

    def library(self, name: str) -> Path | None:
        """Return a library on its default search path, such as `libblas.so`, or None."""
        found = find_library(self.cc, "", name)
        return found and found.resolve()


def check_host_compiler(toolkit: str, compiler: Compiler, newest: Mapping[str, str]) -> None:
    """Fail if a toolkit would refuse a compiler: `newest` has the latest it accepts, by kind."""
    limit = newest.get(compiler.kind)
    if limit is not None and version_numbers(compiler.version)[:1] > version_numbers(limit):
        msg = (
            f"{toolkit} does not compile with {compiler.kind} {compiler.version}: "
            f"the newest it accepts is {limit}"
        )
        hint = f'install {compiler.kind}-{limit}, and set `compiler = "{compiler.kind}-{limit}"`'
        raise HostError(msg, hint=f"{hint} in [toolchain]")


def find_library(cc: str, folders: str, name: str) -> Path | None:
    """Return a library from the folders (as in LD_LIBRARY_PATH), else the compiler's, or None."""
    for folder in filter(None, folders.split(":")):
        if Path(folder, name).exists():
            return Path(folder, name)
    found = Path(program_output(cc, f"-print-file-name={name}"))
    return found if found.is_absolute() else None


def library_folders(cc: str, folders: str) -> list[Path]:
    """Return where a compiler finds libraries: folders (as in LIBRARY_PATH), then its own."""
    output = program_output(cc, "-print-search-dirs")
    own = next((line for line in output.splitlines() if line.startswith("libraries: =")), "")
    named = (*folders.split(":"), *own.removeprefix("libraries: =").split(":"))
    return [Path(folder) for folder in dict.fromkeys(named) if folder]


def find_compiler(name: str, digests: Digests | None = None) -> Compiler:
    """Return the compiler with this name, such as `gcc` or `clang-16`, or at this path."""
    cc = locate_compiler(name)
    kind, version = query_compiler(cc)
    digest = (digests or Digests()).of(programs_of(cc, kind))
    decided(f"compiler {name}: {kind} {version} in {cc}")
    return Compiler(kind=kind, cc=cc, cxx=matching_cxx(cc), version=version, digest=digest)


def locate_compiler(name: str) -> str:
    """Return the path of a compiler that jobs would find, or fail."""
    cc = shutil.which(name, path=SYSTEM_PATH)
    if cc is None:
        msg = f"there is no compiler `{name}` on this machine"
        raise HostError(msg, hint=f"install {Path(name).name}, or set `compiler` of [toolchain]")
    if any(map(_is_in_project, (Path(cc).absolute(), Path(cc).resolve()))):
        msg = f"the compiler `{cc}` is in a project, and plans would run it outside of any sandbox"
        raise HostError(msg, hint="install it elsewhere, and name it there")
    return cc


def _is_in_project(program: Path) -> bool:
    """Return whether a program is in a checkout or beside a torchyard.toml: it may be anything."""
    files = (folder / "torchyard.toml" for folder in program.parents)
    return any(map(is_checkout, program.parents)) or any(map(os.path.lexists, files))


def link_compilers(kind: str, variables: Mapping[str, str], folder: Path) -> None:
    """Link the compilers of CC and CXX into a folder, by the names that scripts call."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in (kind, "cc"):
        for link, program in ((name, variables["CC"]), (_PLUS[name], variables["CXX"])):
            part = folder / f".{link}.part"
            part.unlink(missing_ok=True)
            part.symlink_to(program)
            part.replace(folder / link)


def find_compilers(digests: Digests | None = None) -> tuple[Compiler, ...]:
    """Return every gcc and clang that jobs find by name, each once."""
    found: list[Compiler] = []
    for program in list_compilers():
        with suppress(HostError):
            found.append(find_compiler(str(program), digests))
    return tuple(found)


def list_compilers() -> tuple[Path, ...]:
    """Return the C compilers that jobs find by name, each once, without running them."""
    found: dict[Path, Path] = {}
    for folder in map(Path, SYSTEM_PATH.split(":")):
        with suppress(PermissionError):  # folders that only other users can read
            for program in _listed(folder):
                found.setdefault(program.resolve(), program)
    return tuple(found.values())


def _listed(folder: Path) -> list[Path]:
    versions = sorted(path.name for path in folder.glob("*-[0-9]*"))
    programs = (folder / n for n in ("gcc", "clang", *versions) if _LISTED.fullmatch(n))
    return [program for program in programs if program.is_file()]


def programs_of(cc: str, kind: Kind) -> dict[str, Path]:
    """Return the files that determine a compiler's output, by role."""
    programs = {"driver": Path(cc)}
    for part in _PARTS[kind]:
        if found := shutil.which(program_output(cc, f"-print-prog-name={part}"), path=SYSTEM_PATH):
            programs[part] = Path(found)
    if kind == "clang" and shutil.which("ldd"):  # clang may be linked dynamically to LLVM
        libraries = re.findall(r"(lib(?:LLVM|clang-cpp)\S*) => (\S+)", program_output("ldd", cc))
        programs |= {name: Path(path) for name, path in libraries}
    return programs


def program_output(program: str, *arguments: str) -> str:
    """Return what a program prints, stripped."""
    env = os.environ | {"PATH": SYSTEM_PATH}  # where a driver finds its programs
    return capture([program, *arguments], cwd=Path("/"), env=env).strip()


def query_compiler(cc: str) -> tuple[Kind, str]:
    """Run a compiler, and return its kind and version."""
    output = program_output(cc, "--version")
    if found := re.search(r"clang version (\d+[\d.]*)", output):
        return "clang", found[1]
    try:
        return "gcc", program_output(cc, "-dumpfullversion")
    except HostError as error:
        msg = f"`{cc}` is neither gcc nor clang: it prints `{output.partition(chr(10))[0]}`"
        raise HostError(msg, hint="set `compiler` of [toolchain] to one of them") from error


def matching_cxx(cc: str) -> str:
    """Return the C++ compiler that belongs to a C compiler."""
    path = Path(cc)
    name = _NAME.fullmatch(path.name)
    if name is None:
        msg = f"there is no C++ compiler for the name `{cc}`"
        raise HostError(msg, hint="name a compiler called gcc or clang")
    plus = f"{name['before']}{_PLUS[name['name']]}{name['after'] or ''}"
    cxx = shutil.which(str(path.with_name(plus)))
    if cxx is None:
        msg = f"`{cc}` has no C++ compiler `{plus}` beside it"
        raise HostError(msg, hint=f"install {plus}")
    return cxx
