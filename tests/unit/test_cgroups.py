"""How many processors the control groups of a container allow."""

from pathlib import Path

import pytest
from tests.unit.test_memory import tree

from torchyard.host.cgroups import allowed_processors

V1 = "4:cpu,cpuacct:/a/b\n3:cpuset:/elsewhere\n0::/\n"
V2 = "0::/a/b\n"


def v1(folder: str, quota: int, period: int = 100_000) -> dict[str, object]:
    return {
        "proc/self/cgroup": V1,
        f"sys/fs/cgroup/cpu{folder}/cpu.cfs_quota_us": f"{quota}\n",
        f"sys/fs/cgroup/cpu{folder}/cpu.cfs_period_us": f"{period}\n",
    }


def v2(folder: str, text: str) -> dict[str, object]:
    return {"proc/self/cgroup": V2, f"sys/fs/cgroup{folder}/cpu.max": f"{text}\n"}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({}, None, id="no cgroups"),
        pytest.param(v1("/a/b", -1), None, id="v1 without a quota"),
        pytest.param(v2("/a/b", "max 100000"), None, id="v2 without a quota"),
        pytest.param(v1("/a/b", 200_000), 2, id="v1"),
        pytest.param(v2("/a/b", "200000 100000"), 2, id="v2"),
        pytest.param(v1("/a/b", 150_000), 2, id="one and a half in v1"),
        pytest.param(v2("/a/b", "30000 100000"), 1, id="less than one in v2"),
        pytest.param(v1("/a/b", 1000), 1, id="less than one in v1"),
        pytest.param(v1("/a/b", 400_000) | v1("/a", 100_000), 1, id="a tighter parent in v1"),
        pytest.param(v2("/a/b", "max") | v2("/a", "300000 100000"), 3, id="a parent in v2"),
        pytest.param(v1("", 200_000), 2, id="a host's path in v1"),
        pytest.param(v2("", "200000 100000"), 2, id="a host's path in v2"),
    ],
)
def test_the_tightest_quota_counts(
    tmp_path: Path, files: dict[str, object], expected: int | None
) -> None:
    assert allowed_processors(tree(tmp_path, files)) == expected
