"""The files of a large build: made, read and parsed by a plain program, and by torchyard.

python benchmarks/ninja.py make DIRECTORY UNITS
python benchmarks/ninja.py bare DIRECTORY
python benchmarks/ninja.py ours DIRECTORY GRAPH.html TIMINGS.html
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

TARGETS = 100
FLAGS = " ".join(f"-Wno-some-warning-{number}" for number in range(30))
INCLUDES = " ".join(f"-I/src/third_party/part{number}/include" for number in range(30))


def make(folder: Path, units: int) -> None:
    """Write build.ninja and .ninja_log as CMake and ninja do, for units with PyTorch's flags."""
    folder.mkdir()
    each = units // TARGETS
    with (folder / "build.ninja").open("w", encoding="utf-8") as file:
        file.write(f"cmake_ninja_workdir = {folder}/\ninclude CMakeFiles/rules.ninja\n\n")
        for number in range(TARGETS):
            file.writelines(_target(number, each))
    random = Random(0)  # noqa: S311 - the same each time
    ends = [0] * 16
    rows = []
    for number in range(TARGETS):
        for output in (*(_object(number, unit) for unit in range(each)), _library(number)):
            slot = ends.index(min(ends))
            begin, ends[slot] = ends[slot], ends[slot] + random.randint(200, 40_000)
            rows.append((ends[slot], begin, output))
    with (folder / ".ninja_log").open("w", encoding="utf-8") as file:
        file.write("# ninja log v7\n")
        for end, begin, output in sorted(rows):
            file.write(f"{begin}\t{end}\t{10**18}\t{output}\t{begin:x}{end:x}\n")


def _target(number: int, units: int) -> Iterator[str]:
    name = f"target{number}"
    place = f"third_party/part{number % 20}" if number % 3 == 0 else f"src/part{number}"
    ordered = f"cmake_object_order_depends_target_{name}"
    yield f"build {ordered}: phony || .\n\n"
    for unit in range(units):
        yield (
            f"build {_object(number, unit)}: CXX_COMPILER__{name}_unscanned_Release "
            f"/src/{place}/unit{unit}.cpp || {ordered}\n"
            f"  DEFINES = -DNDEBUG -D{name}_EXPORTS\n"
            f"  DEP_FILE = {_object(number, unit)}.d\n"
            f"  FLAGS = {FLAGS}\n  INCLUDES = {INCLUDES}\n"
            f"  OBJECT_DIR = CMakeFiles/{name}.dir\n\n"
        )
    objects = " ".join(_object(number, unit) for unit in range(units))
    needed = " ".join(_library(other) for other in range(number) if number % (other + 2) == 0)
    yield (
        f"build {_library(number)}: CXX_SHARED_LIBRARY_LINKER__{name}_Release {objects} "
        f"| {needed} /usr/lib/libpart{number % 7}.so || {needed}\n"
        f"  LINK_LIBRARIES = {needed} /usr/lib/libpart{number % 7}.so -lm -ldl\n\n"
    )


def _object(target: int, unit: int) -> str:
    return f"CMakeFiles/target{target}.dir/src/native/unit{unit}.cpp.o"


def _library(target: int) -> str:
    return f"lib/libtarget{target}.so"


def bare(folder: Path) -> None:
    """Read both files for the graph and again for the timings, as two plain programs would."""
    for _ in range(2):
        edges, times = _parsed(folder)
        print(len(edges), len(times))


def _parsed(folder: Path) -> tuple[dict[str, object], dict[str, object]]:
    """Return rule, inputs and time of each output."""
    edges: dict[str, object] = {}
    for line in (folder / "build.ninja").read_text(encoding="utf-8").splitlines():
        if line.startswith("build "):
            outputs, _, words = line[6:].partition(": ")
            needed, _, ordered = words.partition(" || ")
            rule, *inputs = needed.split()
            for output in outputs.split():
                edges[output] = rule, inputs, ordered.split()
    times: dict[str, object] = {}
    for line in (folder / ".ninja_log").read_text(encoding="utf-8").splitlines():
        fields = line.split("\t")
        if len(fields) > 1:
            times[fields[3]] = int(fields[0]) / 1000, int(fields[1]) / 1000, fields[4]
    return edges, times


def ours(folder: Path, graph: Path, timings: Path) -> None:
    """Make the graph and the timings, with their pages."""
    from torchyard.features.graph.page import graph_html  # noqa: PLC0415
    from torchyard.features.graph.use_case import graph_links  # noqa: PLC0415 - a plain program has none of it
    from torchyard.features.timings.page import timings_html  # noqa: PLC0415
    from torchyard.features.timings.use_case import measure_build  # noqa: PLC0415

    graph.write_text(graph_html(graph_links(str(folder))), encoding="utf-8")
    timings.write_text(timings_html(measure_build(str(folder))), encoding="utf-8")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["make", place, count]:
            make(Path(place), int(count))
        case ["bare", place]:
            bare(Path(place))
        case ["ours", place, first, second]:
            ours(Path(place), Path(first), Path(second))
        case _:
            sys.exit(__doc__)
