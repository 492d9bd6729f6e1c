"""Memory as the machine and its cgroups tell it."""

from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

from torchyard.host.memory import Memory, read_memory

MEMINFO = "MemTotal: 16000000 kB\nMemFree: 1000000 kB\nMemAvailable: 8000000 kB\n"
PRESSURE = "some avg10={some} avg60=0.10 avg300=0.00 total=726\nfull avg10=0.00 avg60=0 total=1\n"
UNLIMITED = 9223372036854771712
MACHINE = Memory(8_000_000 * 1024, 16_000_000 * 1024)


def tree(root: Path, files: Mapping[str, object]) -> Path:
    for name, content in {"proc/meminfo": MEMINFO, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(content), encoding="utf-8")
    return root


def v1(folder: str, limit: int, usage: int, inactive: int) -> dict[str, object]:
    statistics = f"cache 7\ninactive_file 1\ntotal_cache 9\ntotal_inactive_file {inactive}\n"
    return {
        f"sys/fs/cgroup/memory{folder}/memory.limit_in_bytes": limit,
        f"sys/fs/cgroup/memory{folder}/memory.usage_in_bytes": usage,
        f"sys/fs/cgroup/memory{folder}/memory.stat": statistics,
    }


def v2(folder: str, limit: object, usage: int, inactive: int) -> dict[str, object]:
    return {
        f"sys/fs/cgroup{folder}/memory.max": limit,
        f"sys/fs/cgroup{folder}/memory.high": "max",
        f"sys/fs/cgroup{folder}/memory.current": usage,
        f"sys/fs/cgroup{folder}/memory.stat": f"anon 5\ninactive_file {inactive}\n",
    }


V1 = {"proc/self/cgroup": "4:cpu,memory:/a/b\n3:cpuset:/elsewhere\n0::/\n"}
V2 = {"proc/self/cgroup": "0::/a/b\n"}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({}, MACHINE, id="no cgroups"),
        pytest.param({**V1, **v1("/a/b", UNLIMITED, 9000, 0)}, MACHINE, id="v1 without a limit"),
        pytest.param({**V2, **v2("/a/b", "max", 9000, 0)}, MACHINE, id="v2 without a limit"),
        pytest.param({**V1, **v1("/a/b", 5000, 3000, 100)}, Memory(2100, 5000), id="v1"),
        pytest.param({**V2, **v2("/a/b", 5000, 3000, 100)}, Memory(2100, 5000), id="v2"),
        pytest.param(
            {**V1, **v1("/a/b", 5000, 3000, 0), **v1("/a", 6000, 5500, 50)},
            Memory(550, 5000),
            id="v1 with a full parent",
        ),
        pytest.param(
            {**V2, **v2("/a/b", "max", 3000, 0), **v2("/a", 6000, 5500, 50)},
            Memory(550, 6000),
            id="v2 with a full parent",
        ),
        pytest.param({**V1, **v1("", 5000, 1000, 0)}, Memory(4000, 5000), id="a host's path in v1"),
        pytest.param(
            {"proc/self/cgroup": "0::/../..\n", **v2("", 5000, 1000, 0)},
            Memory(4000, 5000),
            id="a host's path in v2",
        ),
        pytest.param({**V1, **v1("/a/b", 5000, 6000, 0)}, Memory(0, 5000), id="overdrawn"),
        pytest.param(
            {**V2, **v2("/a/b", 5000, 3000, 0), "sys/fs/cgroup/a/b/memory.high": "4000"},
            Memory(1000, 4000),
            id="a level at which v2 throttles",
        ),
    ],
)
def test_the_scarcest_counts(tmp_path: Path, files: dict[str, object], expected: Memory) -> None:
    assert read_memory(tree(tmp_path, files)) == expected


def test_the_highest_pressure_counts(tmp_path: Path) -> None:
    machine = {"proc/pressure/memory": PRESSURE.format(some="1.50")}
    assert read_memory(tree(tmp_path, machine)).pressure == 1.5
    group = {"sys/fs/cgroup/a/b/memory.pressure": PRESSURE.format(some="20.00")}
    files = {**machine, **V2, **v2("/a/b", "max", 3000, 0), **group}
    assert read_memory(tree(tmp_path, files)).pressure == 20


def test_a_system_without_proc_is_asked_through_psutil(tmp_path: Path) -> None:
    memory = read_memory(tmp_path)
    assert memory.total == psutil.virtual_memory().total
    assert 0 < memory.available <= memory.total
    assert memory.pressure is None
