"""Get the Pythons that torchyard supports, and run the tests with each of them.

    python -m scripts.pythons                    the tests that are not slow, with every Python
    python -m scripts.pythons 3.14 -- -m slow    with one; anything after -- goes to pytest
    python -m scripts.pythons --quick            the newest: install without a compiler, quick tests

A Python of this machine is used if there is one: pyenv's, uv's or the system's. Others are
Debian's: packages of its unstable release are unpacked into a folder, and started by a program that
is linked to the C library among them. That needs gcc, but neither root nor a chroot. Debian has no
free-threaded Python: 3.13t is compiled from its source.

They are kept in $TORCHYARD_TEST_PYTHONS, or in ~/.cache/torchyard-pythons. Each outcome is written
to build/pythons: a file of tests that has passed is not run again until a file of the repository
changes, so a run that was interrupted goes on.
"""

import argparse
import hashlib
import lzma
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import urlopen

import pytest
from scripts.pytest_journal import Ended, ended, prepare

from torchyard.errors import TorchyardError
from torchyard.toolchain.interpreters import interpreter_for

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements/dev.txt"
RECORDS = ROOT / "build/pythons"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
QUICK = (
    *("pytest", "pytest-xdist", "hypothesis", "jsonschema", "syrupy", "allpairspy", "pyyaml"),
    *("hatchling", "hatch-fancy-pypi-readme"),
)
QUICK_TESTS = (
    *("build_here", "ci", "cli", "config", "config_errors", "diagnose", "gates"),
    *("installed_torch", "plan", "policy", "publish", "tables", "zstd"),
)
"""Unit tests of planning, publishing and the commands, which take seconds."""
_LAUNCHER = """
int Py_BytesMain(int, char **);
int main(int count, char **words) { return Py_BytesMain(count, words); }
"""


class MissingPythonError(Exception):
    """There is no Python of a version here, nor what unpacks Debian's."""

    def __str__(self) -> str:
        return f"there is no Python {self.args[0]}; Debian's needs apt-get, dpkg-deb, gpgv and gcc"


def supported() -> list[str]:
    """Return the versions that the classifiers of the project name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))


def kept() -> Path:
    """Return the folder in which Pythons are kept."""
    given = os.environ.get("TORCHYARD_TEST_PYTHONS")
    folder = Path(given) if given else Path.home() / ".cache/torchyard-pythons"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def provide(version: str) -> Path:
    """Return a Python of a version, as `3.15` or `3.13t`; get it unless it is there."""
    try:
        return Path(interpreter_for(f"cp{version.replace('.', '')}").path)
    except TorchyardError:
        pass
    if not all(map(shutil.which, ("apt-get", "dpkg-deb", "gpgv", "gcc"))):
        raise MissingPythonError(version)
    place = kept() / version
    program = place / "usr/bin" / f"python{version}"
    if not program.exists():
        with TemporaryDirectory(dir=kept()) as scratch:
            make = _compile_free_threaded if version.endswith("t") else _make_movable
            make(version, Path(scratch), place)
    return program


# ------------------------------------------------------------------------ from Debian


@cache
def debian_mirror() -> str:
    """Return the mirror of Debian that apt uses here."""
    asked = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.split()[0]


def _fetch(path: str) -> bytes:
    with urlopen(f"{debian_mirror()}{path}", timeout=120) as answer:  # noqa: S310 - the address is ours
        data: bytes = answer.read()
    return data


def _index(suite: str, name: str) -> dict[str, str]:
    """Return the entries of a signed index, by package."""
    release = _fetch(f"dists/{suite}/InRelease")
    subprocess.run(["gpgv", "-q", "--keyring", KEYS], input=release, check=True)
    (digest,) = re.findall(rf"(?m)^ ([0-9a-f]{{64}}) +\d+ {re.escape(name)}$", release.decode())
    entries = lzma.decompress(_checked(f"dists/{suite}/{name}", digest)).decode().split("\n\n")
    return {entry.partition("\n")[0].removeprefix("Package: "): entry for entry in entries}


def _checked(path: str, digest: str) -> bytes:
    data = _fetch(path)
    if hashlib.sha256(data).hexdigest() != digest:
        sys.exit(f"{debian_mirror()}{path} is not what the index says")
    return data


def _field(entry: str, name: str) -> str:
    found = re.search(rf"(?m)^{name}: (.*)$", entry)
    return found[1] if found else ""


def _with_dependencies(index: Mapping[str, str], *wanted: str) -> Iterator[str]:
    """Yield the entries of packages and of all that they depend on, by the first alternative."""
    todo, seen = list(wanted), set[str]()
    while todo:
        name = todo.pop()
        if name in index and name not in seen:
            seen.add(name)
            yield index[name]
            needed = f"{_field(index[name], 'Depends')},{_field(index[name], 'Pre-Depends')}"
            todo += re.findall(r"(?:^|,)\s*([\w.+-]+)", needed)


def unpack(suite: str, machine: str, root: Path, *names: str) -> None:
    """Unpack packages of Debian, and all that they depend on; nothing of them is run."""
    root.mkdir(parents=True)
    index = _index(suite, f"main/binary-{machine}/Packages.xz")
    for entry in _with_dependencies(index, *names):
        package = root / "package.deb"
        package.write_bytes(_checked(_field(entry, "Filename"), _field(entry, "SHA256")))
        subprocess.run(["dpkg-deb", "-x", package, root], check=True)
        package.unlink()


def _make_movable(version: str, scratch: Path, to: Path) -> None:
    """Unpack Debian's packages, changed so that they work in a folder of their own."""
    ask = ["dpkg", "--print-architecture"]
    machine = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
    root = scratch / "root"
    unpack("sid", machine, root, f"python{version}-venv", f"python{version}-dev")
    (libraries,) = (path.parent for path in root.glob(f"usr/lib/*/libpython{version}.so.1.0"))
    (loader,) = (path.name for path in libraries.glob("ld-linux-*.so.*"))
    name = f"python{version}"
    headers = root / "usr/include"
    shutil.copy(headers / libraries.name / name / "pyconfig.h", headers / name / "pyconfig.h")
    (root / "usr/share/python-wheels").rename(root / "usr/lib/python-wheels")
    for file in root.glob(f"usr/lib/{name}/_sysconfigdata_*.py"):
        text = file.read_text(encoding="utf-8").replace("share/python-wheels", "lib/python-wheels")
        file.write_text(text.replace("'/usr/", f"'{to}/usr/"), encoding="utf-8")
    final = to / libraries.relative_to(root)
    linked = ["--disable-new-dtags", "--allow-shlib-undefined", f"-rpath={final}"]
    linked.append(f"--dynamic-linker={final / loader}")
    subprocess.run(
        [
            *("gcc", "-x", "c", "-", "-o", root / f"usr/bin/{name}"),
            *("-x", "none", libraries / f"libpython{version}.so.1.0"),
            f"-Wl,{','.join(linked)}",
        ],
        input=_LAUNCHER.encode(),
        check=True,
    )
    shutil.rmtree(to, ignore_errors=True)
    root.rename(to)


def _compile_free_threaded(version: str, scratch: Path, to: Path) -> None:
    """Compile the source of Debian's stable release."""
    source = f"python{version.removesuffix('t')}"
    entry = _index("trixie", "main/source/Sources.xz")[source]
    (found,) = re.findall(r"(?m)^ ([0-9a-f]{64}) \d+ (\S+\.orig\.tar\.xz)$", entry)
    data = _checked(f"{_field(entry, 'Directory')}/{found[1]}", found[0])
    with tarfile.open(fileobj=BytesIO(data)) as archive:
        archive.extractall(scratch, filter="data")
    (tree,) = scratch.iterdir()
    cores = str(os.cpu_count() or 1)
    for command in (
        ["./configure", "-q", "--disable-gil", "--disable-test-modules", f"--prefix={to}/usr"],
        ["make", "-s", "-j", cores],
        ["make", "-s", "install"],
    ):
        subprocess.run(command, cwd=tree, check=True, stdout=subprocess.DEVNULL)


# ------------------------------------------------------------------------------ tests


def environment(version: str, *, quick: bool) -> Path:
    """Return the Python of an environment with torchyard and what its tests need."""
    place = kept() / f"environment-{version}{'-quick' * quick}"
    python, stamp = place / "bin/python", place / "stamp"
    files = (LOCK, ROOT / "pyproject.toml", ROOT / "farm/pyproject.toml")
    needed = f"{ROOT} {hashlib.sha256(b''.join(file.read_bytes() for file in files)).hexdigest()}"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == needed:
        return python
    _uv("venv", "--clear", "--seed", "--python", str(provide(version)), str(place))
    install = ("pip", "install", "--python", str(python))
    if quick:  # what users install has wheels, and needs no compiler
        _uv(*install, "--only-binary=:all:", "-c", str(LOCK), "-r", str(ROOT / "pyproject.toml"))
        _uv(*install, "-c", str(LOCK), *QUICK)
    else:
        _uv(*install, "--require-hashes", "-r", str(LOCK))
    farm = () if quick else ("--editable", str(ROOT / "farm"))
    _uv(*install, "--no-deps", "--no-build-isolation", "--editable", str(ROOT), *farm)
    stamp.write_text(needed, encoding="utf-8")
    return python


def _uv(*words: str) -> None:
    # Buildbot needs autobahn, which has no wheel for 3.15: without this, it wants a compiler.
    env = {**os.environ, "AUTOBAHN_USE_NVX": "0"}
    program = Path(sys.executable).with_name("uv")
    subprocess.run([program, *words, "--quiet", "--system-certs"], env=env, check=True)


def run_tests(version: str, words: Sequence[str], journal: Path, *, quick: bool) -> bool:
    """Run those tests with a Python that are not in its journal; return whether all passed."""
    python = environment(version, quick=quick)
    own = {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}", **prepare(journal)}
    own["PYTHONPYCACHEPREFIX"] = str(kept() / f"bytecode-{version}")
    command = [
        python,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "scripts.pytest_journal",
    ]
    env = {**os.environ, **own}
    done = subprocess.run([*map(str, command), *words], cwd=ROOT, env=env, check=False)
    return done.returncode in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}


def state() -> str:
    """Return a digest of the commit and of what differs from it."""
    words = (["git", "rev-parse", "HEAD"], ["git", "diff", "HEAD"])
    said = [subprocess.run(w, cwd=ROOT, capture_output=True, check=True).stdout for w in words]
    return hashlib.sha256(b"".join(said)).hexdigest()


def rows(version: str, journal: Path) -> Iterator[tuple[object, ...]]:
    """Yield the counts of each folder in a journal."""
    folders = defaultdict[str, list[Ended]](list)
    for test in ended(journal):
        folders[test.folder].append(test)
    for folder, tests in sorted(folders.items()):
        counts = Counter(test.outcome for test in tests)
        seconds = round(sum(test.seconds for test in tests))
        yield version, folder, counts["passed"], counts["failed"], counts["skipped"], seconds


def main() -> int:
    """Run the tests with each Python that has not passed them; print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("versions", nargs="*", default=supported())
    parser.add_argument("--quick", action="store_true")
    own, _, words = _split(sys.argv[1:])
    asked = parser.parse_args(own)
    versions = supported()[-1:] if asked.quick else asked.versions
    workers = ("-n", str((os.cpu_count() or 1) + 1), "--dist", "loadfile")
    chosen = words or ["-m", "not slow", *workers]
    if asked.quick and not words:
        files = sorted({str(f) for n in QUICK_TESTS for f in ROOT.glob(f"tests/unit/test_{n}.py")})
        chosen += files
    digest, table, have_passed = state()[:16], list[tuple[object, ...]](), True
    for version in versions:
        print(f"= Python {version}", flush=True)
        journal = RECORDS / version / f"{digest}.jsonl"
        try:
            have_passed &= run_tests(version, chosen, journal, quick=asked.quick)
        except MissingPythonError as missing:
            print(missing, flush=True)
            have_passed = False
            continue
        table += rows(version, journal)
    print("| Python | tests | passed | failed | skipped | seconds |\n|---|---|---|---|---|---|")
    for row in table:
        print(f"| {' | '.join(map(str, row))} |")
    return int(not have_passed)


def _split(words: list[str]) -> tuple[list[str], str, list[str]]:
    at = words.index("--") if "--" in words else len(words)
    return words[:at], "--", words[at + 1 :]


if __name__ == "__main__":
    sys.exit(main())
