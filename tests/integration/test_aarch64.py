"""torchyard on aarch64, emulated: unit tests, and the sample built, checked, imported, published.

qemu runs a root of Debian 13 of that machine, whose packages are unpacked only: their emulated
installation would take a quarter of an hour. It emulates no namespaces: bubblewrap in the root is
this machine's own, which starts emulated programs.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from scripts.pythons import LOCK, QUICK, QUICK_TESTS, kept, unpack
from tests.support.helpers import ROOT
from tests.support.recipe import SAMPLE

BINFMT = Path("/proc/sys/fs/binfmt_misc")
HANDLER = Path("/usr/lib/binfmt.d/qemu-aarch64.conf")
PACKAGES = (
    *("base-files", "bash", "coreutils", "dash", "diffutils", "findutils", "grep", "gzip"),
    *("hostname", "libc-bin", "mawk", "sed", "tar", "util-linux"),
    *("python3-venv", "python3-dev", "gcc", "g++", "git", "make"),
)
USERS = ("root:x:0:0:root:/root:/bin/sh", "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin")
CHANGES = """
[[override]]
stage = "core"
env = { TT_UNITS = "1" }

[channel.open]
url = "open"
external = ["*"]
"""
"""Less to compile, as that is emulated; and a channel."""

CELL = "linux-aarch64/cpu-openblas/cp313/wheel"
WITHIN = {
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "PATH": "/mnt/environment/bin:/usr/bin:/usr/sbin",
    "PYTHONPYCACHEPREFIX": "/var/cache/bytecode",  # kept in the root
    "SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt",
}

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0 or not HANDLER.exists() or not all(map(shutil.which, ("bwrap", "gpgv"))),
        reason="needs root, bwrap, gpgv, and qemu-user-static of Debian",
    ),
]


@pytest.fixture(scope="module", autouse=True)
def _emulation() -> None:
    """Let the kernel run programs of aarch64, in all roots."""
    if not (BINFMT / "register").exists():
        subprocess.run(["mount", "-t", "binfmt_misc", "binfmt_misc", BINFMT], check=True)
    if not (BINFMT / "qemu-aarch64").exists():
        (BINFMT / "register").write_bytes(HANDLER.read_bytes().strip())


@pytest.fixture(scope="module")
def root(_emulation: None) -> Path:
    """A root of Debian 13; it is kept."""
    place = kept() / "aarch64"
    if not place.exists():
        with TemporaryDirectory(dir=kept()) as scratch:
            new = Path(scratch, "root")
            unpack("trixie", "arm64", new, *PACKAGES)
            _complete(new)
            new.rename(place)
    return place


def _complete(root: Path) -> None:
    """Make what the scripts of packages would make."""
    users = "".join(f"{user}\n" for user in USERS)
    (root / "etc/passwd").write_text(users, encoding="utf-8")
    (root / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n", encoding="utf-8")
    (root / "usr/bin/awk").symlink_to("mawk")
    for name in ("etc/ssl/certs", "mnt", "root", "run", "tmp"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "etc/resolv.conf").touch()
    _take_bubblewrap(root)


def _take_bubblewrap(root: Path) -> None:
    """Copy this machine's bubblewrap into a root, and the libraries that it needs."""
    program = shutil.which("bwrap")
    assert program
    said = subprocess.run(["ldd", program], check=True, stdout=subprocess.PIPE, text=True).stdout
    for file in (program, *re.findall(r"(/\S+) \(0x", said)):
        copy = root / file.lstrip("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)


@pytest.fixture(scope="module")
def work(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory that emulated commands write to, with torchyard, installed from wheels."""
    work = tmp_path_factory.mktemp("aarch64")
    emulate(root, work, "python3", "-m", "venv", "--without-pip", "environment")
    machine = ("--python-platform=aarch64-manylinux_2_28", "--python-version=3.13")
    site = work / "environment/lib/python3.13/site-packages"
    build = ("uv", "build", "-q", "--wheel", "--offline", "--no-build-isolation")
    subprocess.run([*build, "--python", sys.executable, "-o", work, ROOT], check=True)
    install = ("uv", "pip", "install", "-q", "--system-certs", "--only-binary=:all:", "-c", LOCK)
    wanted = (*map(str, work.glob("*.whl")), *QUICK)
    subprocess.run([*install, *machine, "--target", site, *wanted], check=True)
    for program in (site / "bin").iterdir():
        program.rename(work / "environment/bin" / program.name)
    return work


def emulate(root: Path, work: Path, *argv: object, folder: str = "/mnt") -> str:
    """Run a command that must succeed, and return its output."""
    mounts = ["--bind", root, "/", "--dev-bind", "/dev", "/dev", "--bind", "/proc", "/proc"]
    mounts += ["--ro-bind", "/sys", "/sys", "--tmpfs", "/run", "--tmpfs", "/tmp"]
    for path in ("/etc/resolv.conf", "/etc/ssl/certs"):
        mounts += ["--ro-bind", path, path]
    mounts += ["--ro-bind", ROOT, ROOT, "--bind", work, "/mnt", "--chdir", folder]
    env = [word for name, value in WITHIN.items() for word in ("--setenv", name, value)]
    proxies = [name for name in os.environ if name.lower().endswith("_proxy")]
    env += [word for name in proxies for word in ("--setenv", name, os.environ[name])]
    words = ["bwrap", *mounts, "--cap-add", "ALL", "--clearenv", *env, "--die-with-parent", *argv]
    done = subprocess.run(
        [str(word) for word in words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_unit_tests_pass(root: Path, work: Path) -> None:
    assert emulate(root, work, "uname", "-m").strip() == "aarch64"
    names = sorted({*QUICK_TESTS} - {"ci", "cli"})  # these are about commands of x86-64
    files = [f"tests/unit/test_{name}.py" for name in names]
    pytest_words = ("python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow")
    said = emulate(root, work, *pytest_words, *files, folder=str(ROOT))
    assert re.search(r"^\d{3,} passed", said, re.MULTILINE), said


def test_the_sample_is_built_checked_imported_and_published(root: Path, work: Path) -> None:
    project = work / "tinytorch"
    shutil.copytree(SAMPLE, project, ignore=shutil.ignore_patterns(".torchyard"))
    file = project / "torchyard.toml"
    text = re.sub(r"\[\[matrix\.include\]\]\n(?:.+\n)+", "", file.read_text(encoding="utf-8"))
    file.write_text(text.replace("linux-x86_64", "linux-aarch64") + CHANGES, encoding="utf-8")
    torchyard = ("python3", "-m", "torchyard")
    jobs = [f"{stage}:*/{CELL}" for stage in ("package", "check", "smoke")]
    emulate(root, work, *torchyard, "build", *jobs, "-o", "dist", folder="/mnt/tinytorch")
    (wheel,) = (project / "dist").glob("*.whl")
    assert wheel.name.endswith("_aarch64.whl")
    assert "-cp313-cp313-" in wheel.name
    emulate(root, work, *torchyard, "publish", "--to", "open", "--partial", folder="/mnt/tinytorch")
    assert list((project / "open").rglob("*_aarch64.whl"))
