"""Logs: how fast they are diagnosed, and how often the line is the right one.

    python benchmarks/logs.py speed                a log of 200 MB, against the search alone
    python benchmarks/logs.py fixtures DIRECTORY   fixtures/classify of PyTorch's log classifier

The second needs a checkout of pytorch/test-infra, in which the directory is
aws/lambda/log-classifier. Prints JSON.
"""

import json
import re
import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time

from hyperscan import Database

from torchyard.config.failures import load_failures
from torchyard.model.failure import literals
from torchyard.run.diagnose import diagnose_pieces, diagnose_stream
from torchyard.run.log_text import PIECE

SIZE = 200 << 20
ROUNDS = 5
MARK = "#=MATCH=# "
INCLUDES = " ".join(f"-I/src/third_party/part{number}/include" for number in range(30))


def write_log(path: Path) -> None:
    """Write the log of a build: progress, commands, warnings, and an error at the end."""
    with path.open("w", encoding="utf-8") as log:
        number = 0
        while log.tell() < SIZE:
            for _ in range(1000):
                number += 1
                log.write(
                    f"[{number}/900000] Building CXX object a.dir/native/UnaryOps{number}.o\n"
                )
                if number % 3 == 0:
                    log.write(f"/usr/bin/c++ -Werror=return-type {INCLUDES} -c error{number}.cpp\n")
                if number % 50 == 0:
                    log.write(f"/src/x{number}.h:12:3: warning: comparison [-Wsign-compare]\n")
        log.write("FAILED: a.o\nc++ -c a.cpp\na.cpp:1:1: error: here\n")


def best_seconds(action: Callable[[], object]) -> float:
    """Return the CPU seconds of the quickest of several rounds."""
    seconds = []
    for _ in range(ROUNDS):
        start = process_time()
        action()
        seconds.append(process_time() - start)
    return min(seconds)


def speed() -> dict[str, float]:
    """Diagnose a log, and only search it for the same literals."""
    failures = load_failures()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "build.log")
        write_log(path)

        def diagnose() -> None:
            with path.open("rb") as stream:
                (cause, *_) = diagnose_stream(stream, failures).causes
            if cause.line is None or cause.line.text != "a.cpp:1:1: error: here":
                sys.exit("the error was not found")

        ours = best_seconds(diagnose)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        search = best_seconds(_search(path))
    return {
        "seconds": round(ours, 2),
        "search_seconds": round(search, 2),
        "ratio": round(ours / search, 2),
        "memory_mb": memory,
    }


def _search(path: Path) -> Callable[[], None]:
    words = {word for row in load_failures().values() for word in literals(row.pattern)}
    database = Database()
    database.compile([word.encode() for word in sorted(words)], literal=True)

    def scan() -> None:
        with path.open("rb") as stream:
            while piece := stream.read(PIECE):
                database.scan(piece, match_event_handler=lambda *_: None)

    return scan


def fixtures(folder: Path) -> dict[str, object]:
    """Compare the telling line with the one that is marked in each fixture."""
    failures = load_failures()
    missed: dict[str, dict[str, object]] = {}
    paths = sorted(folder.glob("*.txt"))
    for path in paths:
        lines = [line for line in path.read_text().split("\n") if not line.startswith("#=SOURCE")]
        marked = next((n for n, line in enumerate(lines, 1) if line.startswith(MARK)), None)
        plain = [re.sub("[‹›]", "", x.removeprefix(MARK)) if MARK in x else x for x in lines]  # noqa: RUF001
        cause = diagnose_pieces(["\n".join(plain).encode()], failures).causes[0]
        found = cause.line.number if cause.line else None
        if found != marked:
            missed[path.stem] = {"marked": marked, "found": found, "name": cause.name}
    return {"fixtures": len(paths), "right": len(paths) - len(missed), "missed": missed}


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["speed"]:
            print(json.dumps(speed(), indent=2))
        case ["fixtures", place]:
            print(json.dumps(fixtures(Path(place)), indent=2))
        case _:
            sys.exit(__doc__)
