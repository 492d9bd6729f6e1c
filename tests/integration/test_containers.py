"""Builds where people build: on the host, and in containers of several kinds without extra rights.

The containers have the machine's own file system: see `tests/support/containers.py`.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.containers import (
    POD,
    STRANGER,
    RunningContainer,
    as_in_docker,
    container,
    needs_podman,
    open_folder,
)
from tests.support.recipe import PREFIX, Project, copy_sample, python_for_others

from torchyard.host.cgroups import control_groups
from torchyard.store.store import Store
from torchyard.store.trees import fetch_tree

pytestmark = [pytest.mark.integration, needs_podman]

slow = pytest.mark.slow
PYTHON = f"cp{sys.version_info[0]}{sys.version_info[1]}"
BLOCK = f"{PREFIX}/cpu-openblas"
CELLS = (f"{BLOCK}/{PYTHON}/wheel", f"{BLOCK}/{PYTHON}/conda", f"{BLOCK}/any/libtorch")
TRIED = (CELLS[0], CELLS[2])
"""The conda package needs others that are not built here."""

REFUSES = "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n"
"""A fake bwrap, which says what the real one says on Ubuntu 24.04."""

LINES = {
    "plan": ("plan", *CELLS),
    "doctor": ("doctor", *CELLS, "--skip", f"smoke:{CELLS[1]}"),
    "build": ("build", *(f"package:{cell}" for cell in CELLS), "-o", "dist"),
    "check": ("build", *(f"check:{cell}" for cell in CELLS)),
    "smoke": ("build", *(f"smoke:{cell}" for cell in TRIED)),
    "publish": ("publish", "--to", "open", "--partial"),
}

CHANNELS = """
[channel.open]
url = "open"
smoke = "off"
external = ["*"]
[channel.strict]
url = "strict"
smoke = "off"
external = ["*"]
sandbox = "required"
"""


class Yard(NamedTuple):
    """A folder that all users can enter, with a Python that all of them can run."""

    folder: Path
    python: Path

    def project(self, name: str, owner: int = 0) -> Project:
        project = copy_sample(self.folder / name / "tinytorch", CHANNELS)
        subprocess.run(["chown", "-R", f"{owner}:0", self.folder / name], check=True)
        return project


class Row(NamedTuple):
    """A way to run a command."""

    title: str
    sandbox: str
    """That of jobs which compile."""
    prefix: tuple[str, ...] = ()
    options: tuple[str, ...] | None = None
    """Of a container; None for the host."""
    docker: bool = False
    owner: int = 0
    path: str = ""


SETPRIV = ("setpriv", f"--reuid={STRANGER}", "--regid=0", "--clear-groups")
ROWS = [
    Row("host as root", "bwrap"),
    Row("host as a user", "bwrap", SETPRIV, owner=STRANGER),
    Row("podman as root", "bwrap", options=()),
    Row("podman as a user", "bwrap", options=("--user", f"{STRANGER}:0"), owner=STRANGER),
    Row("docker's profile", "view", options=(), docker=True),
    Row("restricted pod", "view", ("env", "-u", "HOME"), POD, docker=True, owner=STRANGER),
    Row("bubblewrap that may not map users", "view", path="fake"),
]
QUICK = ROWS[5]


@pytest.fixture(scope="module")
def yard() -> Iterator[Yard]:
    with open_folder() as folder:
        python = python_for_others(folder / "venv")
        words = [*SETPRIV, str(python), "-c", "import torchyard"]
        if subprocess.run(words, cwd=folder, check=False, capture_output=True).returncode:
            pytest.skip("others can't use the Python here with what is installed")
        (folder / "fake").mkdir()
        (folder / "fake/bwrap").write_text(REFUSES, encoding="utf-8")
        (folder / "fake/bwrap").chmod(0o755)
        yield Yard(folder, python)


def in_row(yard: Yard, row: Row, project: Project, words: tuple[str, ...]) -> list[str]:
    """Return a command of torchyard as a row runs it, in the directory of a project."""
    home = project.folder.parent
    path = f"{os.defpath}:{Path(sys.executable).parent}"
    path = f"{yard.folder}/{row.path}:{path}" if row.path else path
    variables = (f"XDG_CACHE_HOME={home}/cache", f"PATH={path}", f"HOME={home}", "NO_COLOR=1")
    command = ["env", "-u", "PYENV_ROOT", *variables, *row.prefix]
    command += [str(yard.python), "-m", "torchyard", *words]
    if row.options is None:
        return command
    options = (*row.options, *(as_in_docker(yard.folder) if row.docker else ()))
    return [*container(home, *options, "--workdir", str(project.folder)), *command]


def run_in_row(
    yard: Yard, row: Row, project: Project, *words: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        in_row(yard, row, project, words),
        cwd=project.folder,
        capture_output=True,
        text=True,
        check=False,
    )


def call_in_row(yard: Yard, row: Row, project: Project, *words: str) -> str:
    done = run_in_row(yard, row, project, *words)
    assert done.returncode == 0, f"{row.title}: {words}\n{done.stdout[-5000:]}{done.stderr[-5000:]}"
    return done.stdout + done.stderr


def sandboxes(yard: Yard, row: Row, project: Project) -> dict[str, str]:
    """Return the sandbox of each job, as the manifests in the store have it."""
    said = run_in_row(yard, row, project, "store", "show", "*", "--json").stdout
    results = json.loads(said)["results"]
    return {one["spec"]["tasks"][-1]["stage"]: one["facts"]["sandbox"] for one in results}


STEPS = """
[project]
name = "demo"
version = "1.0"
[source]
path = "source"
[matrix]
platform = ["linux-x86_64"]
compute = ["cpu"]
blas = ["openblas"]
python = ["cp311"]
package = ["libtorch"]
[[steps.core]]
run = ["sh", "-c", "pwd; cc -g -c {source}/x.c -o x.o; cp x.o {out}"]
[[steps.package]]
run = ["sh", "-c", "cp {core}/x.o {out}/x.zip"]
"""


@pytest.mark.slow
def test_a_restricted_pod_compiles_to_the_bytes_of_a_sandbox(yard: Yard) -> None:
    """It has no rights, no name, no home, and one directory that it can write to."""
    made = []
    for row in (ROWS[0], QUICK):
        home = yard.folder / f"steps-{row.title.replace(chr(32), chr(45))}"
        project = Project(home / "demo")
        (project.folder / "source").mkdir(parents=True)
        code = "const char *file = __FILE__;\n"
        (project.folder / "source/x.c").write_text(code, encoding="utf-8")
        project.file.write_text(STEPS, encoding="utf-8")
        subprocess.run(["chown", "-R", f"{row.owner}:0", home], check=True)
        job = f"core:demo-1.0/{BLOCK.partition('/')[2]}"
        sandbox = () if row.sandbox == "bwrap" else ("--sandbox", "view")
        said = call_in_row(yard, row, project, "build", job, *sandbox)
        assert "without a sandbox" not in said, "it was asked for"
        store = Store.at(str(project.store))
        (result,) = (one for one in store.results(store.fingerprints()) if one.id == job)
        (file,) = result.tree.files
        fetch_tree(store, result.tree, home / "got")
        made.append((home / "got" / file.path).read_bytes())
        assert result.facts["sandbox"] == row.sandbox
    assert made[0] == made[1]
    assert b"/mnt/torchyard/build" in made[0]


MEETS = """touch FOLDER/began-$$
for try in $(seq 600); do
  if [ $(ls FOLDER/began-* | wc -l) = 2 ]; then pwd > {out}/path; exit; fi; sleep 0.1
done
exit 1"""
"""A step that waits for another one."""


def test_two_jobs_at_once_do_not_wait_for_each_other(yard: Yard) -> None:
    """Both are at the common path, and each goes on only when the other has begun."""
    row = ROWS[4]
    project = Project(yard.folder / "two/demo")
    (project.folder / "source").mkdir(parents=True)
    head = STEPS.replace('"openblas"', '"openblas", "mkl"').partition("[[steps")[0]
    script = MEETS.replace("FOLDER", str(project.folder))
    step = f"[[steps.core]]\nrun = {json.dumps(['sh', '-c', script])}\n"
    project.file.write_text(head + step, encoding="utf-8")
    call_in_row(yard, row, project, "build", "core:*", "--sandbox", "view", "--jobs", "2")
    store = Store.at(str(project.store))
    made = [one for one in store.results(store.fingerprints()) if one.id.startswith("core:")]
    assert len(made) == 2
    for result in made:
        fetch_tree(store, result.tree, project.folder / result.fingerprint)
        path = project.folder / result.fingerprint / "path"
        assert path.read_text("utf-8") == "/mnt/torchyard/build\n"


class Cell(NamedTuple):
    """What a row made, and how long each of its lines took."""

    packages: Mapping[str, bytes]
    seconds: Mapping[str, float]


def build_row(yard: Yard, row: Row) -> Cell:
    project = yard.project(row.title.replace(" ", "-"), row.owner)
    seconds = {}
    for name, words in LINES.items():
        began = time.monotonic()
        said = call_in_row(yard, row, project, *words)
        seconds[name] = time.monotonic() - began
        if name in ("doctor", "build"):
            assert ("without a sandbox" in said) == (row.sandbox != "bwrap"), said
    kinds = sandboxes(yard, row, project)
    assert {kinds["core"], kinds["bindings"]} == {row.sandbox}
    strict = run_in_row(yard, row, project, "publish", "--to", "strict", "--partial")
    assert ("was not made in a sandbox" in strict.stderr) == (row.sandbox != "bwrap")
    assert (strict.returncode == 0) == (row.sandbox == "bwrap")
    files = (project.folder / "dist").glob("[!.]*")
    return Cell({path.name: path.read_bytes() for path in files}, seconds)


@pytest.fixture(scope="module")
def made() -> dict[str, Cell]:
    return {}


@slow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.title)
def test_all_rows_build_the_same_packages(yard: Yard, made: dict[str, Cell], row: Row) -> None:
    made[row.title] = build_row(yard, row)
    first = next(iter(made.values()))
    assert len(first.packages) == len(CELLS)
    assert made[row.title].packages == first.packages


@slow
def test_the_table_is_complete(made: dict[str, Cell], capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\n{'':34}", *(f"{name:>8}" for name in LINES))
        for title, cell in made.items():
            print(f"{title:34}", *(f"{cell.seconds[name]:6.1f} s" for name in LINES))
    assert list(made) == [row.title for row in ROWS]


# --------------------------------------------------------------------------- figures


def used_processor(group: Path) -> float:
    """Return the seconds that a control group has used."""
    if (old := group / "cpuacct.usage").exists():
        return int(old.read_text("ascii")) / 1e9
    words = (group / "cpu.stat").read_text("ascii").split()
    return int(words[words.index("usage_usec") + 1]) / 1e6


GROUP = """
group=$(ls -d /sys/fs/cgroup/cpuacct 2>/dev/null || echo /sys/fs/cgroup)
read_usage() { cat $group/cpuacct.usage 2>/dev/null || sed -n 's/usage_usec //p' $group/cpu.stat; }
before=$(read_usage); "$@" >/dev/null 2>&1; code=$?; echo $(($(read_usage) - before)); exit $code
"""
"""Prints what a command used in a container, whose group is its own."""


@slow
def test_a_container_with_dockers_profile_costs_no_more_than_the_host(yard: Yard) -> None:
    """The caches of installers are warm, and on the same disk as the build."""
    host, docker = ROWS[0], ROWS[4]
    own = next(iter(control_groups("cpuacct")), None)
    top = Path("/sys/fs/cgroup/cpuacct" if own and not own.unified else "/sys/fs/cgroup")
    group = top / f"torchyard-{os.getpid()}"
    group.mkdir()
    used: dict[str, list[float]] = {"host": [], "docker": []}
    project = yard.project("figures")
    call_in_row(yard, host, project, *LINES["build"])
    try:
        for _ in range(2):
            for name, figures in used.items():
                shutil.rmtree(project.folder / ".torchyard")
                if name == "host":
                    before = used_processor(group)
                    enter = ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "-"]
                    words = [*enter, *in_row(yard, host, project, LINES["build"])]
                    subprocess.run(words, cwd=project.folder, check=True, capture_output=True)
                    figures.append(used_processor(group) - before)
                else:
                    words = in_row(yard, docker, project, LINES["build"])
                    at = words.index("env")
                    words[at:at] = ["sh", "-c", GROUP, "-"]
                    said = subprocess.check_output(words, cwd=project.folder, text=True)
                    figures.append(int(said) / (1e9 if "cpuacct" in str(top) else 1e6))
    finally:
        group.rmdir()
    print({name: [round(one, 1) for one in all_] for name, all_ in used.items()})
    assert min(used["docker"]) <= 1.05 * min(used["host"])


# --------------------------------------------------------------------------- killed


def units_done(project: Project) -> int:
    logs = (project.folder / ".torchyard/work").glob("core-*/job/build/build/.ninja_log")
    return sum(log.read_text("utf-8").count(".o\t") for log in logs)


EATS = """
choom -n 1000 -- "$@" &
log='.torchyard/work/core-*/job/build/build/.ninja_log'
until [ "$(cat $log 2>/dev/null | grep -c '[.]o')" -ge 3 ]
do kill -0 $! || exit 1; sleep 0.1; done
exec python3 -c 'eaten = []
while True: eaten.append(bytearray(1 << 24))'
"""
"""Runs a build, and takes all memory of its container when three units are compiled.

The kernel kills processes of the build first.
"""


SMALL = """
[[steps.core]]
run = ["sh", "{source}/compile.sh", "{source}", "{out}"]
"""
COMPILE = """set -e
mkdir -p build; cd build
if [ ! -e build.ninja ]; then
  { echo 'rule cc'
    echo '  command = sleep 0.3; cc -c $in -o $out'
    echo '  description = Building C object $out'
    for n in $(seq 40); do echo "build $n.o: cc $1/x.c"; done
  } > build.ninja
fi
ninja -j 1; cp ./*.o "$2"
"""


def small_project(folder: Path) -> Project:
    """Make a project whose core has forty units."""
    project = Project(folder / "demo")
    (project.folder / "source").mkdir(parents=True)
    (project.folder / "source/x.c").write_text("int x;\n", encoding="utf-8")
    (project.folder / "source/compile.sh").write_text(COMPILE, encoding="utf-8")
    project.file.write_text(STEPS.partition("[[steps")[0] + SMALL, encoding="utf-8")
    return project


both_ways = pytest.mark.parametrize("how", ["podman kill", "its own limit"])


@slow
@both_ways
def test_the_next_container_goes_on_with_a_small_project(yard: Yard, how: str) -> None:
    project = small_project(yard.folder / f"small-{how}".replace(" ", "-"))
    kill_and_go_on(yard, project, f"core:demo-1.0/{BLOCK.partition('/')[2]}", how)


@slow
@both_ways
def test_the_next_container_goes_on_and_no_unit_is_compiled_twice(yard: Yard, how: str) -> None:
    kill_and_go_on(yard, yard.project(how.replace(" ", "-")), f"core:{BLOCK}", how)


def kill_and_go_on(yard: Yard, project: Project, job: str, how: str) -> None:
    """Build a job in a container that is killed, and in the next one, which must go on."""
    row, view = ROWS[4], ("--sandbox", "view", "--slots", "1")
    words = in_row(yard, row, project, ("build", job, *view))
    at = words.index("--rootfs")
    options, argv = words[words.index("--workdir") + 2 : at], words[at + 2 :]
    if how == "its own limit":
        options += ["--memory", "1g", "--memory-swap", "1g"]
        argv = ["sh", "-c", EATS, "-", *argv]
    first = RunningContainer(project.folder.parent, options, argv)
    try:
        while how == "podman kill" and units_done(project) < 3 and not first.has_ended():
            time.sleep(0.05)
        if how == "podman kill":
            first.kill()
    finally:
        code = first.end()
    assert code == 128 + signal.SIGKILL
    assert units_done(project) >= 3
    call_in_row(yard, row, project, "build", job, *view)
    log = call_in_row(yard, row, project, "store", "show", job, "--log")
    told = re.findall(r"\] Building \w+ object (\S+)(?=\n(.*))", log)
    compiled = Counter(unit for unit, following in told if "FAILED: " not in following)
    assert len(compiled) > 3
    assert set(compiled.values()) == {1}, compiled
