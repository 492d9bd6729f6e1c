"""Corrections of the records of conda packages."""

import json
from pathlib import Path

import msgspec
import pytest

from torchyard.errors import UsageError
from torchyard.host.zstd import decompress
from torchyard.index.conda.patch import (
    Correction,
    RecordPatch,
    patched,
    read_instructions,
)
from torchyard.index.conda.record import conda_record, listed_record
from torchyard.index.conda.repodata import repodata_pages
from torchyard.index.conda.shards import changed_shards
from torchyard.index.entry import NOT_PATCHED, Entry, State
from torchyard.package.conda.name import required_name

FILE = "demo-1.0-h1_0.conda"


def entry(**fields: object) -> Entry:
    record = {"name": "demo", "version": "1.0", "build": "h1_0", "md5": "00", "sha256": "00"}
    return Entry(
        file=FILE,
        version="1.0",
        variant="cpu",
        sha256="00",
        size=1,
        uploaded="2026-11-15T14:20:00Z",
        record=msgspec.Raw(json.dumps(record | fields).encode()),
    )


DEMO = entry(depends=["python >=3.12,<3.13.0a0", "numpy >=1.21"], license="MIT", features="x")


def listed(found: Entry) -> dict[str, object]:
    fields: dict[str, object] = json.loads(bytes(listed_record(found)))
    return fields


@pytest.mark.parametrize(
    ("change", "depends"),
    [
        (Correction(depends=("numpy >=1.21,<2",)), ["python >=3.12,<3.13.0a0", "numpy >=1.21,<2"]),
        (Correction(depends=("zlib",)), ["python >=3.12,<3.13.0a0", "numpy >=1.21", "zlib"]),
        (Correction(dropped=("numpy",)), ["python >=3.12,<3.13.0a0"]),
        (
            Correction(depends=("forge::NumPy 2.*",)),
            ["python >=3.12,<3.13.0a0", "forge::NumPy 2.*"],
        ),
        (Correction(dropped=("scipy",)), ["python >=3.12,<3.13.0a0", "numpy >=1.21"]),
    ],
)
def test_a_requirement_replaces_that_of_the_same_name(
    change: Correction, depends: list[str]
) -> None:
    found = change.applied(DEMO)
    assert listed(found) == {**listed(DEMO), "depends": depends}
    assert conda_record(found).depends == depends
    assert found.record == DEMO.record


def test_corrections_add_up_and_end_where_they_say_what_the_package_says() -> None:
    once = Correction(depends=("numpy <2",)).applied(DEMO)
    twice = Correction(constrains=("blas * mkl",), license="BSD-3-Clause").applied(once)
    assert json.loads(bytes(twice.patch)) == {
        "constrains": ["blas * mkl"],
        "depends": ["python >=3.12,<3.13.0a0", "numpy <2"],
        "license": "BSD-3-Clause",
    }
    back = Correction(("numpy >=1.21",), (), ("blas",), "MIT").applied(twice)
    assert back == DEMO
    assert patched(twice, RecordPatch()) == DEMO


def test_a_field_that_is_null_is_removed() -> None:
    found = patched(DEMO, RecordPatch(features=None, license_family="MIT"))
    assert listed(found) == {k: v for k, v in listed(DEMO).items() if k != "features"} | {
        "license_family": "MIT"
    }


def test_nothing_is_corrected_in_what_is_not_named() -> None:
    assert Correction().applied(DEMO).patch == NOT_PATCHED
    assert listed_record(DEMO) is DEMO.record


def test_all_forms_of_the_index_have_the_correction_and_one_has_the_original() -> None:
    found = Correction(depends=("numpy <2",)).applied(DEMO)
    state = State(entries=(found,))
    original, plain, packed = repodata_pages("linux-64", state)
    assert original.path == "conda/linux-64/repodata_from_packages.json"
    records = [json.loads(page.data)["packages.conda"][FILE] for page in (original, plain)]
    assert records == [listed(DEMO), listed(found)]
    assert decompress(packed.data) == plain.data
    _, (shard,) = changed_shards("linux-64", state, [found])
    (record,) = msgspec.msgpack.decode(decompress(shard.data))["packages.conda"].values()
    assert record["depends"] == listed(found)["depends"]


def test_the_original_stays_once_it_was_there() -> None:
    assert len(list(repodata_pages("linux-64", State(entries=(DEMO,))))) == 2
    tags = {"conda/linux-64/repodata_from_packages.json": "00"}
    original, plain, _ = repodata_pages("linux-64", State(entries=(DEMO,), tags=tags))
    assert original.data == plain.data


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("numpy", "numpy"),
        ("NumPy >=1", "numpy"),
        ("numpy>=1", "numpy"),
        ("conda-forge::numpy 1.*", "numpy"),
        ("conda-forge/linux-64::numpy[version='>=1']", "numpy"),
        ("__cuda >=13", "__cuda"),
        ("", ""),
    ],
)
def test_the_name_of_a_requirement(spec: str, name: str) -> None:
    assert required_name(spec) == name


def instructions(folder: Path, **more: object) -> Path:
    path = folder / "linux-64/patch_instructions.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"patch_instructions_version": 1, **more}), encoding="utf-8")
    return folder


def test_instructions_are_those_of_conda(tmp_path: Path) -> None:
    told = {"packages.conda": {FILE: {"depends": []}}, "packages": {"a-1-0.tar.bz2": {}}}
    found = read_instructions(instructions(tmp_path, **told, revoke=[], remove=[]))
    assert found == {"linux-64": {FILE: RecordPatch(depends=()), "a-1-0.tar.bz2": RecordPatch()}}


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"patch_instructions_version": 2}, "can't be read"),
        ({"packages": {FILE: {"sha256": "00"}}}, "`sha256`"),
        ({"packages": {FILE: {"depends": "numpy"}}}, "can't be read"),
        ({"remove": [FILE]}, "removes or revokes"),
        ({"revoke": [FILE]}, "removes or revokes"),
    ],
)
def test_other_instructions_are_refused(tmp_path: Path, more: dict[str, object], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        read_instructions(instructions(tmp_path, **more))


def test_a_directory_without_instructions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="patch_instructions"):
        read_instructions(tmp_path)
