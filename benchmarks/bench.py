"""Every performance limit, most of them as a ratio to a baseline measured in the same minute.

Prints a table and fails if a limit is exceeded. Machines are noisy, so both sides alternate several
times, in separate processes, and the best run of each counts.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory, gettempdir
from time import perf_counter
from typing import NamedTuple

HERE = Path(__file__).parent
EXAMPLE = HERE.parent / "examples/pytorch/torchyard.toml"
TORCHYARD = Path(sysconfig.get_path("scripts")) / "torchyard"
MEGABYTE = 2**20
FOUND = 13
"""How `torchyard check` ends if a package has errors, as torch's has."""
LIBRARY = "torch/lib/libtorch_python.so"


class Result(NamedTuple):
    """One limit: the measured value, its unit, and the largest allowed value.

    A value below `least` can't be right: the benchmark measures something else.
    """

    promise: str
    measured: float
    unit: str
    limit: float
    detail: str
    least: float = 0

    @property
    def verdict(self) -> str:
        if self.measured < self.least:
            return "WRONG"
        return "kept" if self.measured <= self.limit else "BROKEN"


def start_up(rounds: int = 40) -> list[Result]:
    commands = {
        "bare": [sys.executable, "-c", "pass"],
        "ours": [str(TORCHYARD), "plan", "--list", "cells", "-f", str(EXAMPLE)],
    }
    best = _best(rounds, commands, HERE)
    detail = f"{best['ours'] * 1e3:.0f} ms, python -c pass {best['bare'] * 1e3:.0f} ms"
    return [Result("plan --list cells, start-up", best["ours"] / best["bare"], "×", 8, detail)]


def large_plan(rounds: int = 5) -> list[Result]:
    """Plan 100,000 jobs; the largest matrix that the tables allow has about 11,000."""
    runs = [_large_plan() for _ in range(rounds)]
    jobs = runs[0]["jobs"]
    if jobs < 10**5:
        msg = f"the benchmark's matrix has only {jobs} jobs"
        raise ValueError(msg)
    seconds = min(run["seconds"] for run in runs)
    memory = max(run["memory"] for run in runs) / MEGABYTE
    detail = f"{seconds / jobs * 1e6:.1f} µs a job"
    return [
        Result(f"plan of {jobs:,.0f} jobs, CPU time", seconds, "s", 3, detail),
        Result(f"plan of {jobs:,.0f} jobs, memory", memory, "MB", 300, "peak of the process"),
    ]


def finished_build(rounds: int = 8) -> list[Result]:
    """Run a build with all results in the store, against listing these results."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, str(HERE / "builds.py")]
        store = str(Path(folder, "store"))
        subprocess.run([*command, "make", store], check=True)
        best = _best(
            rounds, {what: [*command, what, store] for what in ("list", "build")}, Path(folder)
        )
    detail = f"{best['build'] * 1e3:.0f} ms, bare listing {best['list'] * 1e3:.0f} ms"
    ratio = best["build"] / best["list"]
    return [Result("build of 11,501 finished jobs", ratio, "×", 3, detail)]


def build_insight(rounds: int = 7, units: int = 20_000) -> list[Result]:
    """Make graph and timings of a large build, with their pages, against only parsing its files.

    The pages are opened in Chromium, if that is installed: until they are loaded, by its own clock.
    """
    with TemporaryDirectory() as folder:
        program = [sys.executable, str(HERE / "ninja.py")]
        build, pages = str(Path(folder, "build")), [Path(folder, f"{n}.html") for n in "ab"]
        subprocess.run([*program, "make", build, str(units)], check=True)
        commands = {
            "bare": [*program, "bare", build],
            "ours": [*program, "ours", build, *map(str, pages)],
        }
        best = _best_cpu(rounds, commands)
        size = max(page.stat().st_size for page in pages) / MEGABYTE
        opened = _opened(pages, Path(folder))
    detail = f"{best['ours']:.2f} s, reading and parsing {best['bare']:.2f} s"
    what = f"graph and timings of {units:,} units"
    return [
        Result(f"{what}, CPU", best["ours"] / best["bare"], "×", 3, detail),
        Result(f"{what}, page", size, "MB", 5, "the larger of the two"),
        *opened,
    ]


_LOADED = "<script>addEventListener('load', () => document.title = performance.now())</script>"


def _opened(pages: list[Path], folder: Path) -> list[Result]:
    chromium = shutil.which("chromium")
    if chromium is None:
        return []
    options = ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile")
    times = []
    for page in pages:
        page.write_text(page.read_text(encoding="utf-8") + _LOADED, encoding="utf-8")
        command = [chromium, *options, "--dump-dom", page.as_uri()]
        texts = (subprocess.run(command, check=True, capture_output=True).stdout for _ in range(3))
        titles = (text.partition(b"<title>")[2].partition(b"<")[0] for text in texts)
        times.append(min(map(float, titles)) / 1000)
    shown = " and ".join(f"{seconds:.2f} s" for seconds in times)
    return [Result("the page, loaded in Chromium", max(times), "s", 2, shown)]


EMPTY = """
[project]
name = "nothing"
version = "1.0"
recipe = "extension"
[source]
path = "code"
[matrix]
platform = ["linux-x86_64", "linux-aarch64", "windows-x86_64", "macos-arm64"]
compute = ["cpu"]
torch = ["torch2.8", "torch2.9", "torch2.10", "torch2.11", "torch2.12", "torch2.13", "torch2.14"]
python = ["cp310", "cp311", "cp312", "cp313", "cp313t", "cp314", "cp314t", "cp315", "cp315t"]
package = ["wheel"]
[[steps.bindings]]
run = ["true"]
"""


BARE = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "true"]
"""A sandbox as one would start it by hand."""


def empty_jobs(rounds: int = 2) -> list[Result]:
    """Run jobs that do nothing, against the same processes under xargs, stage by stage.

    Once without a sandbox, and once in one, against steps that start bubblewrap by themselves.
    """
    by_hand = EMPTY.replace('["true"]', json.dumps(BARE))
    free = _jobs_ratio(rounds, EMPTY, EMPTY, sandbox="none")
    enclosed = _jobs_ratio(rounds, EMPTY, by_hand, sandbox="bwrap")
    return [
        free._replace(promise=f"build of {free.promise} jobs of `true`"),
        enclosed._replace(promise=f"{enclosed.promise} jobs of `true` in sandboxes"),
    ]


def _jobs_ratio(rounds: int, built: str, by_hand: str, sandbox: str) -> Result:
    """Return the time of a build, compared to that of other steps without a sandbox by xargs."""
    with TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "code").mkdir()
        for name, text in (("torchyard.toml", built), ("by-hand.toml", by_hand)):
            (home / name).write_text(text, encoding="utf-8")
        listed = subprocess.run(
            [TORCHYARD, "plan", "bindings:*", "--json"],
            cwd=home,
            check=True,
            capture_output=True,
        )
        stages: dict[str, list[str]] = {}
        for job in json.loads(listed.stdout)["jobs"]:
            stages.setdefault(job["stage"], []).append(job["id"])
        count = sum(map(len, stages.values()))
        width = str(os.cpu_count())
        run = f"'{TORCHYARD}' run -f by-hand.toml --sandbox none"
        script = "; ".join(
            f"xargs -P {width} -n 1 {run} <<'E'\n{chr(10).join(jobs)}\nE\n"
            for jobs in stages.values()
        ).replace("\n; ", "\n")
        build = [str(TORCHYARD), "build", "bindings:*", "--jobs", width, "--any-platform"]
        commands = {"xargs": ["sh", "-c", script], "build": [*build, "--sandbox", sandbox]}
        best = _best(rounds, commands, home, fresh=home / ".torchyard")
    detail = f"{best['build'] / count * 1e3:.0f} ms a job, xargs {best['xargs'] / count * 1e3:.0f}"
    return Result(str(count), best["build"] / best["xargs"], "×", 1.5, detail)


def core_once(units: int = 90) -> list[Result]:
    """Build a matrix of packages, against compiling each unit once and a build for each wheel.

    PyTorch has far more units (1,331, of 11 CPU seconds each). The overhead of a job does not
    depend on their number, so the first ratio only improves with more of them.
    """
    command = [sys.executable, "-m", "benchmarks.recipe", str(units)]
    done = subprocess.run(command, cwd=HERE.parent, check=True, stdout=subprocess.PIPE)
    cpu: dict[str, float] = json.loads(done.stdout)
    detail = f"{cpu['matrix']:.0f} CPU s for 11 packages"
    return [
        Result(
            "matrix, to each unit once",
            cpu["matrix"] / cpu["ninja"],
            "×",
            1.15,
            f"{detail}, ninja {cpu['ninja']:.0f}",
            least=1,
        ),
        Result(
            "matrix, to a build for each wheel",
            cpu["matrix"] / (4 * cpu["full"]),
            "×",
            0.4,
            f"{detail}, a build {cpu['full']:.0f}",
        ),
    ]


_OURS = """\
from pathlib import Path
from torchyard.package.zip.writer import members_of, writing
with writing(Path("ours.zip")) as archive:
    archive.add(members_of(Path("files")))
"""
_PLAIN = """\
import zipfile
from pathlib import Path
with zipfile.ZipFile("plain.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
    for path in sorted(Path("files").iterdir()):
        archive.write(path, path.name)
"""


def write_wheel(rounds: int = 3, size: int = 100 * MEGABYTE) -> list[Result]:
    """Write a wheel with real libraries, against zipfile and zlib at the same level."""
    with TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "files").mkdir()
        libraries = sorted(Path(sys.base_prefix).rglob("*.so*")) + sorted(
            Path(sysconfig.get_path("platlib")).rglob("*.so*")
        )
        total = 0
        for number, library in enumerate(libraries):
            if library.is_file() and total < size:
                total += Path(shutil.copy(library, home / f"files/{number:04}.so")).stat().st_size
        commands = {
            name: [sys.executable, "-c", code]
            for name, code in (("ours", _OURS), ("plain", _PLAIN))
        }
        best = _best(rounds, commands, home)
        ours, plain = ((home / f"{name}.zip").stat().st_size for name in commands)
    what = f"archive of {total / MEGABYTE:.0f} MB of libraries"
    seconds = f"{best['ours']:.1f} s, zlib {best['plain']:.1f} s"
    sizes = f"{ours / MEGABYTE:.1f} MB, zlib {plain / MEGABYTE:.1f} MB"
    return [
        Result(f"{what}, time", best["ours"] / best["plain"], "×", 0.6, seconds),
        Result(f"{what}, size", ours / plain, "×", 1.01, sizes),
    ]


def torch_wheel() -> Path:
    """Return the wheel of `TORCHYARD_BENCH_WHEEL`, or torch 2.13.0, downloaded once by pip."""
    given = os.environ.get("TORCHYARD_BENCH_WHEEL")
    if given:
        return Path(given)
    cache = Path(gettempdir(), "torchyard-bench")
    if not list(cache.glob("torch-*.whl")):
        options = ("--no-deps", "--only-binary=:all:", "--dest", str(cache))
        command = [sys.executable, "-m", "pip", "download", "torch==2.13.0", *options]
        subprocess.run(command, check=True, stdout=sys.stderr)
    (wheel,) = cache.glob("torch-*.whl")
    return wheel


def retag(rounds: int = 5) -> list[Result]:
    """Retag a real wheel, against unpacking it and packing it again."""
    wheel = torch_wheel()
    bare = [sys.executable, str(HERE / "wheels.py"), "repack", str(wheel), "out"]
    ours = [str(TORCHYARD), "repair", str(wheel), "--output", "out", "--no-check"]
    slow = _best_cpu(1, {"bare": bare})["bare"]
    labels = {"retag": ["--platform-tag", "linux_x86_64"], "re-version": ["--version", "9.0"]}
    best = _best_cpu(rounds, {name: [*ours, *options] for name, options in labels.items()})
    return [
        Result(
            f"{name} of a wheel, to `wheel` itself, CPU",
            seconds / slow,
            "×",
            0.01,
            f"{seconds:.2f} s, unpack and pack {slow:.1f} s: {slow / seconds:.0f} times",
        )
        for name, seconds in best.items()
    ]


def repair(rounds: int = 7) -> list[Result]:
    """Repair one library of a real wheel, against `cp` and the work on that library alone."""
    wheel = torch_wheel()
    change = ("--rpath", "$ORIGIN:$ORIGIN/x", "--members", LIBRARY, "--no-check")
    commands = {
        "bare": [sys.executable, str(HERE / "wheels.py"), "bare", str(wheel), "out", LIBRARY],
        "ours": [str(TORCHYARD), "repair", str(wheel), "--output", "out", *change],
    }
    best = _best_cpu(rounds, commands)
    detail = f"{best['ours']:.2f} s, cp, inflate, patchelf, deflate {best['bare']:.2f} s"
    return [Result("repair of a library, CPU", best["ours"] / best["bare"], "×", 1.3, detail)]


def check(rounds: int = 5) -> list[Result]:
    """Run all rules over a real wheel, against only reading it, and against other programs."""
    wheel = str(torch_wheel())
    commands = {
        "ours": [str(TORCHYARD), "check", wheel],
        "bare": [sys.executable, str(HERE / "wheels.py"), "inflate", wheel],
        "unzip": ["unzip", "-tq", wheel],
    }
    best = _best_cpu(rounds, commands)
    slow = _best_cpu(1, {"auditwheel": [sys.executable, "-m", "auditwheel", "show", wheel]})
    ours, audit = best["ours"], slow["auditwheel"]
    python = min(_used([sys.executable, "-c", "pass"]).memory for _ in range(3))
    memory = max(_used(commands["ours"]).memory for _ in range(3)) - python
    seconds = f"{ours:.2f} s"
    return [
        Result(
            "check of a wheel, CPU",
            ours / best["bare"],
            "×",
            1.4,
            f"{seconds}, inflate and sha256 {best['bare']:.2f} s",
        ),
        Result("check, to unzip -tq", ours / best["unzip"], "×", 1, f"unzip {best['unzip']:.2f} s"),
        Result(
            "check, to auditwheel show",
            ours / audit,
            "×",
            0.05,
            f"{audit:.1f} s: {audit / ours:.0f} times",
        ),
        Result("check, memory beyond Python's", memory / MEGABYTE, "MB", 128, "peak"),
    ]


PAGES = [sys.executable, str(HERE / "pages.py")]


def full_index(rounds: int = 3, files: int = 10**6) -> list[Result]:
    """Write all pages of a channel from its states, against a loop that writes the same bytes."""
    with TemporaryDirectory() as folder:
        channel, out = str(Path(folder, "channel")), str(Path(folder, "bare"))
        subprocess.run([*PAGES, "make", channel, str(files)], check=True)
        bare, ours = [], []
        for _ in range(rounds):
            shutil.rmtree(out, ignore_errors=True)
            bare.append(_used([*PAGES, "bare-all", channel, out]))
            for view in Path(out).iterdir():
                shutil.rmtree(Path(channel, view.name))
            ours.append(_used([*PAGES, "all", channel]))
        _check_same_files(Path(out), Path(channel))
    best, least = min(ours).seconds, min(bare).seconds
    detail = f"{best:.1f} s, bare {least:.1f} s"
    memory = max(run.memory for run in ours) / MEGABYTE
    return [
        Result(f"index of {files:,} files, CPU", best / least, "×", 2, detail),
        Result(f"index of {files:,} files, memory", memory, "MB", 200, "20,000 in a project"),
    ]


def dumb_index(rounds: int = 7, files: int = 10**5) -> list[Result]:
    """Write the same index, against dumb-pypi, which has no index for each variant."""
    with TemporaryDirectory() as folder:
        channel, listed = str(Path(folder, "channel")), Path(folder, "files.json")
        subprocess.run([*PAGES, "make", channel, str(files)], check=True)
        with listed.open("wb") as file:
            subprocess.run([*PAGES, "list", str(files)], check=True, stdout=file)
        views = [path for path in Path(channel).iterdir() if Path(path, "index.html").exists()]
        ours = []
        for _ in range(rounds):
            for view in views:
                shutil.rmtree(view)
            ours.append(_used([*PAGES, "all", channel]).seconds)
        options = ("--package-list-json", str(listed), "--packages-url", "../../packages")
        command = [sys.executable, "-m", "dumb_pypi.main", *options, "--no-per-release-json"]
        dumb = _used([*command, "--output-dir", "out"]).seconds
    detail = f"{min(ours):.2f} s, dumb-pypi {dumb:.1f} s: {dumb / min(ours):.0f} times"
    ratio = min(ours) / dumb
    return [Result(f"index of {files:,} files, to dumb-pypi, CPU", ratio, "×", 1 / 30, detail)]


def one_file(rounds: int = 7, files: int = 10**6) -> list[Result]:
    """Publish one more file, against a program that writes only its project's pages."""
    with TemporaryDirectory() as folder:
        channel, out = str(Path(folder, "channel")), str(Path(folder, "bare"))
        subprocess.run([*PAGES, "make", channel, str(files)], check=True)
        bare, ours = [], []
        for number in map(str, range(rounds)):
            bare.append(_used([*PAGES, "bare-one", channel, number, out]).seconds)
            ours.append(_used([*PAGES, "one", channel, number]).seconds)
            _check_same_files(Path(out), Path(channel))
    best, least = min(ours), min(bare)
    detail = f"{best * 1e3:.0f} ms, bare {least * 1e3:.0f} ms, both with start-up"
    return [Result(f"one file more in {files:,}, CPU", best / least, "×", 3, detail)]


def synced_file(rounds: int = 7, files: int = 10**6) -> list[Result]:
    """Publish one more file, against the same without a sync."""
    with TemporaryDirectory() as folder:
        channel = str(Path(folder, "channel"))
        subprocess.run([*PAGES, "make", channel, str(files)], check=True)
        best = {"synced": float("inf"), "unsynced": float("inf")}
        for number in range(0, 2 * rounds, 2):
            for name, prefix in (("synced", []), ("unsynced", _without_sync(Path(folder)))):
                one = str(number + (name == "synced"))
                command = [*prefix, *PAGES, "one", channel, one]
                best[name] = min(best[name], _best(1, {name: command}, HERE)[name])
    return [_sync_cost(f"one file more in {files:,}, synced", best, 1.2)]


def synced_jobs(rounds: int = 3) -> list[Result]:
    """Run jobs that do nothing, against the same without a sync."""
    with TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "code").mkdir()
        (home / "torchyard.toml").write_text(EMPTY, encoding="utf-8")
        build = [str(TORCHYARD), "build", "bindings:*", "--any-platform"]
        commands = {"synced": build, "unsynced": [*_without_sync(home), *build]}
        best = _best(rounds, commands, home, fresh=home / ".torchyard")
    return [_sync_cost("build of jobs of `true`, synced", best, 1.03)]


def _without_sync(folder: Path) -> list[str]:
    """Return what to put before a command so that it syncs nothing."""
    (folder / "unsynced").mkdir(exist_ok=True)
    text = "import os\nos.fsync = lambda _: None\n"
    (folder / "unsynced/sitecustomize.py").write_text(text, encoding="utf-8")
    return ["env", f"PYTHONPATH={folder / 'unsynced'}"]


def _sync_cost(promise: str, best: dict[str, float], limit: float) -> Result:
    detail = f"{best['synced'] * 1e3:.0f} ms, without a sync {best['unsynced'] * 1e3:.0f} ms"
    return Result(promise, best["synced"] / best["unsynced"], "×", limit, detail)


def _check_same_files(folder: Path, other: Path) -> None:
    for path in folder.rglob("*.*"):
        if path.is_file() and path.read_bytes() != (other / path.relative_to(folder)).read_bytes():
            msg = f"the bare program writes something else to {path.relative_to(folder)}"
            raise ValueError(msg)


def conda(rounds: int = 5, count: int = 10_000) -> list[Result]:
    """Publish one more package in a large conda channel, against other indexers."""
    with TemporaryDirectory() as folder:
        program = [sys.executable, str(HERE / "conda.py")]
        first, ours = Path(folder, "rattler"), Path(folder, "ours")
        others = {"rattler": first, "conda-index": Path(folder, "conda-index")}
        subprocess.run([*program, "make", str(first), str(count)], check=True)
        shutil.copytree(first, others["conda-index"])
        subprocess.run([*program, "publish", ours.as_uri(), str(first)], check=True)
        for name, place in others.items():
            _used([*program, name, str(place)])
        best = dict.fromkeys(("ours", *others), float("inf"))
        for number in range(count, count + rounds):
            for place in others.values():
                subprocess.run([*program, "more", str(place), str(number)], check=True)
            (package,) = first.glob(f"linux-64/*_h{number:07x}_*.conda")
            commands = {name: [*program, name, str(place)] for name, place in others.items()}
            commands["ours"] = [*program, "add", ours.as_uri(), str(package)]
            for name, command in commands.items():
                best[name] = min(best[name], _used(command).seconds)
    return [
        Result(
            f"a conda package more, to {name}, CPU",
            best["ours"] / best[name],
            "×",
            1 / 30,
            f"{best['ours']:.2f} s, {best[name]:.1f} s: {best[name] / best['ours']:.0f} times",
        )
        for name in others
    ]


class Used(NamedTuple):
    """CPU seconds of a process and its children, and the largest peak memory of one."""

    seconds: float
    memory: int


def _used(command: list[str]) -> Used:
    """Run a command with an empty directory `out`; findings in its output do not matter here.

    Programs may cache their bytecode, as installed programs do.
    """
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with TemporaryDirectory() as folder:
        Path(folder, "out").mkdir()
        quiet = subprocess.DEVNULL
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=quiet, stderr=quiet)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, FOUND):
        raise subprocess.CalledProcessError(process.returncode, command)
    return Used(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def _best_cpu(rounds: int, commands: dict[str, list[str]]) -> dict[str, float]:
    """Return the least CPU time of each command."""
    best = dict.fromkeys(commands, float("inf"))
    for _ in range(rounds):
        for name, command in commands.items():
            best[name] = min(best[name], _used(command).seconds)
    return best


def _best(
    rounds: int, commands: dict[str, list[str]], folder: Path, fresh: Path | None = None
) -> dict[str, float]:
    """Return the shortest time of each command; the commands alternate."""
    best = dict.fromkeys(commands, float("inf"))
    for _ in range(rounds):
        for name, command in commands.items():
            if fresh:
                shutil.rmtree(fresh, ignore_errors=True)
            start = perf_counter()
            subprocess.run(
                command,
                cwd=folder,
                check=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            best[name] = min(best[name], perf_counter() - start)
    return best


def _large_plan() -> dict[str, float]:
    command = [sys.executable, str(HERE / "plans.py")]
    done = subprocess.run(command, check=True, capture_output=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


BENCHMARKS: dict[str, Callable[[], list[Result]]] = {
    "start-up": start_up,
    "large-plan": large_plan,
    "finished-build": finished_build,
    "build-insight": build_insight,
    "empty-jobs": empty_jobs,
    "core-once": core_once,
    "write-wheel": write_wheel,
    "check": check,
    "retag": retag,
    "repair": repair,
    "full-index": full_index,
    "dumb-index": dumb_index,
    "one-file": one_file,
    "synced-file": synced_file,
    "synced-jobs": synced_jobs,
    "conda": conda,
}


JUMP = 1.15
"""How often as large as the median of the last runs a figure may be."""


def jumps(results: list[Result], history: Path) -> list[str]:
    """Append results to a file of earlier runs, and return the promises whose figures jumped."""
    lines = history.read_text(encoding="utf-8").splitlines() if history.exists() else []
    earlier: list[dict[str, float]] = [json.loads(line) for line in lines[-5:]]
    history.parent.mkdir(parents=True, exist_ok=True)
    with history.open("a", encoding="utf-8") as file:
        file.write(json.dumps({result.promise: result.measured for result in results}) + "\n")
    return [
        result.promise
        for result in results
        if (before := [run[result.promise] for run in earlier if result.promise in run])
        and result.measured > JUMP * median(before)
    ]


def measure(names: Iterable[str]) -> Iterator[Result | None]:
    """Yield the results of benchmarks as they come, None for one that fails; print each."""
    for name in names:
        try:
            results = BENCHMARKS[name]()
        except Exception:  # noqa: BLE001 - the results of the others count
            traceback.print_exc()
            print(f"{name:40} FAILED", flush=True)
            yield None
            continue
        for result in results:
            print(
                f"{result.promise:40} {result.measured:8.2f} {result.unit:2} "
                f"(at most {result.limit:g}) {result.verdict:6}  {result.detail}",
                flush=True,
            )
            yield result


def main() -> int:
    """Run the benchmarks that are named, or all; return 1 if one fails, breaks or jumps."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="BENCHMARK", help=", ".join(BENCHMARKS))
    parser.add_argument("--history", type=Path, help="file of earlier figures, to compare with")
    asked = parser.parse_args()
    measured = list(measure(asked.names or BENCHMARKS))
    results = [result for result in measured if result]
    jumped = jumps(results, asked.history) if asked.history else []
    for promise in jumped:
        print(f"{promise:40} JUMPED: over {JUMP:g} times the median of the last five runs")
    kept = all(result and result.verdict == "kept" for result in measured)
    return int(not kept or bool(jumped))


if __name__ == "__main__":
    sys.exit(main())
