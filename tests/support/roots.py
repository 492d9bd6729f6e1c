"""Roots: directories that say they are Debian, with some programs of this machine."""

import os
import shutil
import subprocess
from pathlib import Path

STATUS = """\
Package: gcc
Status: install ok installed
Architecture: amd64
Version: 4:14.2.0-1

Package: removed
Status: deinstall ok config-files
Architecture: amd64
Version: 1

Package: libc6
Status: install ok installed
Architecture: amd64
Version: {version}
"""


def make_debian(root: Path, version: str = "2.41-12") -> str:
    """Make a directory that says it is Debian."""
    for name in ("usr", "etc", "var/lib/dpkg", "root", "home", "tmp"):
        (root / name).mkdir(parents=True)
    (root / "bin").symlink_to("usr/bin")
    (root / "etc/os-release").write_text('ID=debian\nVERSION_ID="13"\n', encoding="utf-8")
    (root / "var/lib/dpkg/status").write_text(STATUS.format(version=version), encoding="utf-8")
    return str(root)


def copy_program(name: str, root: Path) -> None:
    """Copy a program and its libraries into a root."""
    program = os.path.realpath(shutil.which(name) or name)
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    for path in map(Path, (program, *(word for word in listed.split() if word[0] == "/"))):
        place = root / path.relative_to("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)


def make_small_root(root: Path) -> Path:
    """Make a root in which steps can run a few programs."""
    make_debian(root)
    (root / "bin").unlink()
    for name in ("bash", "cat", "ls", "mkdir"):
        copy_program(name, root)
    (root / "usr/bin/sh").symlink_to("bash")
    (root / "usr/only-here.txt").write_text("of the root\n", encoding="utf-8")
    return root


BULLSEYE = "bullseye"
_KEPT = "TORCHYARD_TEST_ROOTS"
"""The variable that names a directory in which large roots are kept between runs."""

_PYTHON = """\
set -e
cd {folder}
mkdir -p lists/partial
echo "deb-src {mirror} bookworm main" > sources
apt="-o Dir::Etc::sourcelist=$PWD/sources -o Dir::Etc::sourceparts=/dev/null"
apt="$apt -o Dir::State::lists=$PWD/lists"
apt-get $apt update -qq
apt-get $apt source -qq --download-only python3.11
mkdir -p {root}/src
tar -xf python3.11_*.orig.tar.* -C {root}/src --strip-components=1
chroot {root} bash -euc '
cd /src
./configure -q --prefix=/opt/_internal/cpython-3.11 --disable-test-modules
make -s -j2
make -s install
cd /opt/_internal/cpython-3.11
ln -s python3 bin/python
mkdir /opt/python
ln -s /opt/_internal/cpython-3.11 /opt/python/cp311-cp311
bin/python -c "import bz2, ctypes, lzma, ssl, zlib"
rm -rf /src lib/python3.11/test
apt-get clean'
"""
_MIRROR = "http://deb.debian.org/debian"
_PACKAGES = "g++,make,git,ca-certificates,libbz2-dev,libffi-dev,liblzma-dev,libssl-dev,zlib1g-dev"


def make_system(suite: str, scratch: Path, packages: str = "ca-certificates") -> Path:
    """Make a system of Debian, or return the one that is kept."""
    kept = Path(os.environ.get(_KEPT) or scratch / "roots")
    root = kept / suite
    if not root.is_dir():
        kept.mkdir(parents=True, exist_ok=True)
        part = kept / f"{suite}.part"
        shutil.rmtree(part, ignore_errors=True)
        argv = ["debootstrap", "--variant=minbase", f"--include={packages}", suite]
        subprocess.run([*argv, str(part), _MIRROR], check=True, stdout=subprocess.DEVNULL)
        if suite == BULLSEYE:
            _compile_python(part, scratch)
        part.rename(root)
    return root


def make_manylinux(scratch: Path) -> Path:
    """Make Debian 11 with Python 3.11 in /opt/python, as images of manylinux have it.

    Its glibc, 2.31, is the oldest that can be had; its own Python is 3.9.
    """
    return make_system(BULLSEYE, scratch, _PACKAGES)


def _compile_python(root: Path, scratch: Path) -> None:
    folder = scratch / "python"
    folder.mkdir()
    script = _PYTHON.format(folder=folder, root=root, mirror=_MIRROR)
    subprocess.run(["bash", "-c", script], check=True, stdout=subprocess.DEVNULL)
