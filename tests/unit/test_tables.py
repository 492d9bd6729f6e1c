"""The shipped tables: valid, consistent, and byte for byte what a program would write."""

import msgspec
import pytest

from torchyard.config.tables import FILES, check, dump, header_of, load_tables, parse
from torchyard.errors import DataError
from torchyard.host.files import read_data
from torchyard.model.tables import Cuda, Tables


@pytest.mark.parametrize("name", FILES)
def test_round_trip(name: str) -> None:
    text = read_data(f"{name}.toml")
    assert dump(parse(name, text, FILES[name]), header_of(text)) == text


def test_upstream_facts() -> None:
    tables = load_tables()
    cu126 = tables.cuda["cu126"].archs
    assert cu126["linux-x86_64"] == ("5.0", "6.0", "7.0", "7.5", "8.0", "8.6", "9.0")
    assert cu126["linux-aarch64"] == ("8.0", "9.0")
    for name in ("cu130", "cu132"):
        archs = tables.cuda[name].archs
        assert archs["linux-x86_64"] == ("7.5", "8.0", "8.6", "9.0", "10.0", "12.0+PTX")
        assert archs["linux-aarch64"] == ("8.0", "9.0", "10.0", "11.0", "12.0+PTX")
    assert len(tables.rocm["rocm7.2"].archs["linux-x86_64"]) == 14
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
        parse("cuda", text, Cuda)


def broken(**changes: object) -> Tables:
    return msgspec.structs.replace(load_tables(), **changes)


def cuda(**changes: object) -> dict[str, Cuda]:
    return {"cu130": msgspec.structs.replace(load_tables().cuda["cu130"], **changes)}


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (broken(cuda=cuda(version="13.1")), "has the version of cu131"),
        (broken(cuda=cuda(archs={"linux-x86_64": ("8.0", "8.0")})), "one of them twice"),
        (broken(cuda=cuda(archs={"linux-x86_64": ()})), "no architectures"),
        (broken(cuda=cuda(archs={"linux-x86_64": ("10.0", "9.0")})), "not in order"),
        (broken(cuda=cuda(archs={"beos-x86_64": ("9.0",)})), "unknown platform `beos-x86_64`"),
        (broken(cuda={}), "unknown compute platform `cu126`"),
        (broken(plain={"x-pu": load_tables().plain["cpu"]}), "can't stand before the `-`"),
        (broken(pythons={"any": load_tables().pythons["cp312"]}), "a Python is called `any`"),
        (broken(pythons={"cp 3": load_tables().pythons["cp312"]}), "can't be part"),
        (
            broken(
                packages={
                    "wheel": msgspec.structs.replace(
                        load_tables().packages["wheel"], recipes=("cake",)
                    )
                }
            ),
            "unknown recipe `cake`",
        ),
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
        check(tables)
