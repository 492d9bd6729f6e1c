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
