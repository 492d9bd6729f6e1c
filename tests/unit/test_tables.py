"""The shipped tables: valid, consistent, and byte for byte what a program would write."""

import msgspec
import pytest

from torchyard.compute.cuda import Cuda
from torchyard.compute.cuda.table import CudaRow, cuda_table
from torchyard.compute.platform import ComputePlatform
from torchyard.compute.registry import compute_platforms, known_computes
from torchyard.compute.table import ComputeTable, parse_compute_table
from torchyard.config.tables import FILES, check_tables, dump, header_of, load_tables, parse_data
from torchyard.errors import DataError
from torchyard.host.files import read_data
from torchyard.model.tables import Tables


@pytest.mark.parametrize("name", FILES)
def test_round_trip(name: str) -> None:
    text = read_data(f"{name}.toml")
    assert dump(parse_data(name, text, FILES[name]), header_of(text)) == text


@pytest.mark.parametrize("platform", compute_platforms(), ids=lambda platform: platform.name)
def test_round_trip_of_compute_tables(platform: ComputePlatform) -> None:
    text = read_data(f"compute/{platform.name}.toml")
    table = platform.table()
    more = {"libraries": table.libraries, "builds": table.builds, "machine": table.machine}
    sections = {name: rows for name, rows in more.items() if msgspec.to_builtins(rows)}
    assert dump({**table.rows, **sections}, header_of(text)) == text


def test_upstream_facts() -> None:
    tables = load_tables()
    cu126 = tables.compute["cu126"].archs
    assert cu126["linux-x86_64"] == ("5.0", "6.0", "7.0", "7.5", "8.0", "8.6", "9.0")
    assert cu126["linux-aarch64"] == ("8.0", "9.0")
    for name in ("cu130", "cu132"):
        archs = tables.compute[name].archs
        assert archs["linux-x86_64"] == ("7.5", "8.0", "8.6", "9.0", "10.0", "12.0+PTX")
        assert archs["linux-aarch64"] == ("8.0", "9.0", "10.0", "11.0", "12.0+PTX")
    assert len(tables.compute["rocm7.2"].archs["linux-x86_64"]) == 14
    newest = tables.releases["2.14"]
    assert newest.libraries["cu130"] == {"cudnn": "9.24.0.43", "nccl": "2.30.7"}
    assert newest.triton["cu130"] == "3.8.0"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[cu130]\nversion = 13.0\n", "malformed"),
        ('[cu130]\nversion = "13.0"\nsurprise = 1\n', "malformed"),
        ("not toml", "malformed"),
    ],
)
def test_a_malformed_table_is_refused(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        parse_compute_table(text, CudaRow, "data/compute/cuda.toml")


def broken(**changes: object) -> Tables:
    return msgspec.structs.replace(load_tables(), **changes)


class OddCuda(Cuda):
    def __init__(self, **changes: object) -> None:
        self.row = msgspec.structs.replace(cuda_table().rows["cu130"], **changes)

    def table(self) -> ComputeTable[CudaRow]:
        return ComputeTable({"cu130": self.row}, {}, "odd.toml")


@pytest.mark.parametrize(
    ("platform", "message"),
    [
        (OddCuda(version="13.1"), "has the version of cu131"),
        (OddCuda(archs={"linux-x86_64": ("8.0", "8.0")}), "one of them twice"),
        (OddCuda(archs={"linux-x86_64": ()}), "no architectures"),
        (OddCuda(archs={"linux-x86_64": ("10.0", "9.0")}), "not in order"),
    ],
)
def test_an_odd_table_of_a_compute_platform_is_refused(platform: OddCuda, message: str) -> None:
    with pytest.raises(DataError, match=message):
        known_computes([platform])


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (
            broken(compute=known_computes([OddCuda(archs={"beos-x86_64": ("9.0",)})])),
            "unknown platform `beos-x86_64`",
        ),
        (broken(compute={}), "unknown compute platform `cu117`"),
        (
            broken(compute={"x-pu": load_tables().compute["cpu"]}),
            "can't have a `-` in an identifier",
        ),
        (
            broken(pythons={"any": load_tables().pythons["cp312"]}),
            "`any` is not the tag",
        ),
        (broken(pythons={"cp 3": load_tables().pythons["cp312"]}), "`cp 3` is not the tag"),
        (broken(packages={}), "the recipe extension names the unknown package kind `wheel`"),
        (broken(formats={}), "unknown format `wheel`"),
        (
            broken(
                formats={
                    name: msgspec.structs.replace(form, platform={"tag": "shape"})
                    for name, form in load_tables().formats.items()
                }
            ),
            "unknown column `shape`",
        ),
    ],
)
def test_a_contradiction_between_tables_is_refused(tables: Tables, message: str) -> None:
    with pytest.raises(DataError, match=message):
        check_tables(tables)
