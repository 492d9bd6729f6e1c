"""Every performance promise, as a ratio to a bare baseline measured in the same minute.

Prints a table and fails if a promise is not kept. Machines are noisy, so both sides run in turn,
several times, in processes of their own, and the best of each counts.
"""

import json
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

HERE = Path(__file__).parent
EXAMPLE = HERE.parent / "examples/pytorch/torchyard.toml"
TORCHYARD = Path(sysconfig.get_path("scripts")) / "torchyard"
MEGABYTE = 2**20


class Result(NamedTuple):
    """One promise: what was measured, in which unit, and the most that is allowed."""

    promise: str
    measured: float
    unit: str
    limit: float
    detail: str

    @property
    def kept(self) -> bool:
        return self.measured <= self.limit


def start_up(rounds: int = 40) -> list[Result]:
    commands = {
        "bare": [sys.executable, "-c", "pass"],
        "ours": [str(TORCHYARD), "plan", "--identifiers", "-f", str(EXAMPLE)],
    }
    best = dict.fromkeys(commands, float("inf"))
    for _ in range(rounds):
        for name, command in commands.items():
            start = perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            best[name] = min(best[name], perf_counter() - start)
    detail = f"{best['ours'] * 1e3:.0f} ms, python -c pass {best['bare'] * 1e3:.0f} ms"
    return [Result("plan --identifiers, start-up", best["ours"] / best["bare"], "×", 8, detail)]


def million_jobs(rounds: int = 5) -> list[Result]:
    runs = [(_child("bare"), _child("plan")) for _ in range(rounds)]
    bare = min(run["seconds"] / run["jobs"] for run, _ in runs)
    plan = min(run["seconds"] / run["jobs"] for _, run in runs)
    jobs = runs[0][1]["jobs"]
    if jobs < 10**6:
        msg = f"the benchmark's matrix has only {jobs} jobs"
        raise ValueError(msg)
    memory = max(run["memory"] for _, run in runs) / MEGABYTE
    detail = f"{plan * 1e6:.2f} µs a job, bare loop {bare * 1e6:.2f} µs"
    return [
        Result(f"plan of {jobs:,.0f} jobs, CPU time", plan / bare, "×", 2, detail),
        Result(f"plan of {jobs:,.0f} jobs, memory", memory, "MB", 600, "peak of the process"),
    ]


def _child(what: str) -> dict[str, float]:
    command = [sys.executable, str(HERE / "million.py"), what]
    done = subprocess.run(command, check=True, capture_output=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


BENCHMARKS: dict[str, Callable[[], list[Result]]] = {
    "start-up": start_up,
    "million-jobs": million_jobs,
}


def main() -> int:
    names = sys.argv[1:] or list(BENCHMARKS)
    results = [result for name in names for result in BENCHMARKS[name]()]
    for result in results:
        verdict = "kept" if result.kept else "BROKEN"
        print(
            f"{result.promise:40} {result.measured:8.2f} {result.unit:2} "
            f"(at most {result.limit:g}) {verdict:6}  {result.detail}"
        )
    return int(not all(result.kept for result in results))


if __name__ == "__main__":
    sys.exit(main())
