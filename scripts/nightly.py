"""Run the nightly checks in shards, and go on where a run was interrupted.

    python -m scripts.nightly              all shards of .ci/nightly.toml
    python -m scripts.nightly docs farm    these
    python -m scripts.nightly --list       their names, as JSON

What has passed at this state of the repository is not run again. Outcomes and logs are written to
build/nightly; the table at the end has them all.
"""

import argparse
import json
import os
import subprocess
import sys
import tomllib
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from scripts.pytest_journal import ended, prepare
from scripts.pythons import state

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ROOT / "build/nightly"
NO_TESTS_LEFT = 5


class Shard(NamedTuple):
    """A part of the nightly checks: a section of .ci/run, or files with slow tests."""

    name: str
    section: str = ""
    files: tuple[str, ...] = ()


class Outcome(NamedTuple):
    """How a shard has ended."""

    verdict: str
    minutes: float
    tests: dict[str, int]


def test_files() -> list[str]:
    found = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("farm/tests/**/test_*.py")]
    return sorted(file.relative_to(ROOT).as_posix() for file in found)


def shards() -> tuple[list[Shard], float]:
    """Return the shards, and how many minutes each may take."""
    table = tomllib.loads((ROOT / ".ci/nightly.toml").read_text(encoding="utf-8"))
    files: dict[str, list[str]] = {name: [] for name in table["tests"]}
    for file in test_files():
        for name, globs in table["tests"].items():
            if any(fnmatchcase(file, glob) for glob in globs):
                files[name].append(file)
                break
    made = [Shard(name, section=section) for name, section in table["sections"].items()]
    made += [Shard(name, files=tuple(own)) for name, own in files.items()]
    return made, table["minutes"]


def command(shard: Shard, journal: Path) -> tuple[list[str], dict[str, str]]:
    """Return what runs a shard, and its environment."""
    if shard.section:
        return ["bash", ".ci/run", "--active", shard.section], dict(os.environ)
    workers = ("-n", str((os.cpu_count() or 1) + 1), "--dist", "loadfile")
    plugin = ("-p", "scripts.pytest_journal")
    words = [sys.executable, "-m", "pytest", "-m", "slow", *workers, *plugin, *shard.files]
    return words, {**os.environ, **prepare(journal)}


def run(shard: Shard, folder: Path, minutes: float) -> Outcome:
    """Run a shard; its output is shown, and goes to a log."""
    journal, log = folder / f"{shard.name}.jsonl", folder / f"{shard.name}.log"
    words, env = command(shard, journal)
    started = monotonic()
    with (
        log.open("ab") as file,
        subprocess.Popen(
            words, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as process,
    ):
        for line in process.stdout or ():
            sys.stdout.buffer.write(line)
            sys.stdout.flush()
            file.write(line)
        code = process.wait()
    took = (monotonic() - started) / 60
    passed = code == 0 or (code == NO_TESTS_LEFT and not shard.section)
    verdict = "failed" if not passed else "passed" if took <= minutes else "too slow"
    return Outcome(verdict, round(took, 1), Counter(test.outcome for test in ended(journal)))


def main() -> int:
    """Run the shards that have not passed, and print a table of all that were asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="SHARD")
    parser.add_argument("--list", action="store_true", help="print the names of all shards")
    asked = parser.parse_args()
    found, minutes = shards()
    if asked.list:
        print(json.dumps([shard.name for shard in found]))
        return 0
    if unknown := set(asked.names) - {shard.name for shard in found}:
        parser.error(f"no shard {', '.join(sorted(unknown))}; see --list")
    folder = RECORDS / state()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    outcomes = {}
    for shard in found:
        if asked.names and shard.name not in asked.names:
            continue
        record = folder / f"{shard.name}.json"
        if record.exists():
            outcome = Outcome(*json.loads(record.read_text(encoding="utf-8")))
        else:
            print(f"== nightly: {shard.name}", flush=True)
            outcome = run(shard, folder, minutes)
            if outcome.verdict == "passed":
                record.write_text(json.dumps(outcome), encoding="utf-8")
        outcomes[shard.name] = outcome
    print("\n| shard | outcome | minutes | passed | failed | skipped |\n|---|---|---|---|---|---|")
    for name, (verdict, took, tests) in outcomes.items():
        counts = " | ".join(str(tests.get(word, 0)) for word in ("passed", "failed", "skipped"))
        print(f"| {name} | {verdict} | {took} | {counts} |")
    return int(any(outcome.verdict != "passed" for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
