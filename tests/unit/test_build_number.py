"""Packages of a version that are made anew: their numbers in plans, names and metadata."""

import json
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.utils import parse_wheel_filename
from tests.support.helpers import SMALL, config_of, fingerprints, plan_of

from torchyard.errors import ConfigError
from torchyard.index.entry import Entry, State
from torchyard.index.libtorch.listing import listing_pages
from torchyard.model.recipe import Stage
from torchyard.package.conda.metadata import CondaBuild, CondaKind, describe
from torchyard.package.libtorch.format import LibtorchFormat, zip_build, zip_without_build
from torchyard.package.libtorch.write import ZipLabel
from torchyard.package.wheel.name import wheel_name, wheel_tags
from torchyard.package.wheel.write import write_wheel

REBUILT = SMALL.replace("[source]", "build_number = 3\n\n[source]")
ZIP = "libtorch-shared-with-deps-2.14.0+cpu"


def test_a_number_makes_new_packages_of_the_same_builds() -> None:
    before, after = fingerprints(plan_of(SMALL)), fingerprints(plan_of(REBUILT))
    changed = {stage for stage, path in before if before[stage, path] != after[stage, path]}
    assert changed == {Stage.PACKAGE, Stage.CHECK, Stage.SMOKE}
    job = plan_of(REBUILT).find(Stage.PACKAGE, "linux-x86_64/cpu-mkl/cp312/wheel")
    assert job.settings.values["build_number"] == "3"


@pytest.mark.parametrize("zero", ["project.build_number=0", 'project.build_number="0"'])
def test_the_first_package_has_no_number(zero: str) -> None:
    config = config_of(SMALL, zero)
    assert config.project.build_number == 0
    job = plan_of(SMALL).find(Stage.PACKAGE, "linux-x86_64/cpu-mkl/cp312/wheel")
    assert "build_number" not in job.settings.values


@pytest.mark.parametrize("bad", ["-1", "100", "01", '"one"', "1.5", "true"])
def test_what_is_no_number_is_refused_with_its_line(bad: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config_of(REBUILT.replace("build_number = 3", f"build_number = {bad}"))
    (found,) = caught.value.diagnostics
    assert found.span is not None
    assert found.span.line == REBUILT[: REBUILT.index("build_number")].count("\n") + 1


def test_a_wheel_has_a_build_tag(tmp_path: Path) -> None:
    name = wheel_name("torch", "2.14.0+cpu", wheel_tags("cp312"), "linux_x86_64", 3)
    assert name == "torch-2.14.0+cpu-3-cp312-cp312-linux_x86_64.whl"
    assert parse_wheel_filename(name)[2] == (3, "")
    image = tmp_path / "image"
    about = image / "torch-2.14.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: torch\nVersion: 2.14.0\n", encoding="utf-8"
    )
    spec = tmp_path / "torchyard-spec.json"
    spec.write_text("{}", encoding="utf-8")
    (tmp_path / "out").mkdir()
    made = write_wheel(
        image,
        tmp_path / "out",
        name="torch",
        version="2.14.0+cpu",
        tags=wheel_tags("cp312"),
        platform_tag="linux_x86_64",
        requires=[],
        spec=spec,
        number=3,
    )
    assert made.name == name
    with ZipFile(made) as archive:
        text = archive.read("torch-2.14.0+cpu.dist-info/WHEEL").decode()
    assert "Build: 3" in text.splitlines()


def test_the_number_of_a_zip_is_behind_its_version() -> None:
    label = ZipLabel("torch", "2.14.0+cpu", "linux-x86_64", number=3)
    assert label.file_name == f"{ZIP}-3.zip"
    assert [zip_build(f"{ZIP}{end}.zip") for end in ("", "-3", "-3-debug", "-debug")] == [
        0,
        3,
        3,
        0,
    ]
    assert zip_without_build(f"{ZIP}-3.zip") == f"{ZIP}.zip"
    assert zip_without_build("libx-1.0-1.zip") == "libx-1.0.zip"
    assert zip_build("libtorch-macos-arm64-2.6.0.zip") == 0
    new = LibtorchFormat().new_name(f"{ZIP}-3.zip", lambda _: "2.14.1+cpu", ())
    assert new == "libtorch-shared-with-deps-2.14.1+cpu-3.zip"


def test_the_latest_zip_is_that_of_the_highest_number() -> None:
    files = [f"{ZIP}{end}.zip" for end in ("-2", "", "-10")]
    entries = tuple(
        Entry(
            file=file,
            version="2.14.0+cpu",
            variant="cpu",
            sha256=sha256(file.encode()).hexdigest(),
            size=1,
            uploaded="2026-11-15T14:20:00Z",
        )
        for file in files
    )
    pages = {
        page.path: page for page in listing_pages("torch", State(entries=entries), "cpu", entries)
    }
    latest = json.loads(pages["libtorch/torch/cpu/latest.json"].data)
    assert [one["file"] for one in latest["files"]] == [f"{ZIP}-10.zip"]
    everything = json.loads(pages["libtorch/torch/cpu/index.json"].data)
    assert [one["file"] for one in everything["files"]] == [
        f"{ZIP}-10.zip",
        f"{ZIP}-2.zip",
        f"{ZIP}.zip",
    ]


def test_condas_numbers_are_above_their_offsets() -> None:
    build = CondaBuild(
        name="torch",
        version="2.14.0+cu130",
        compute="cu130",
        blas="mkl",
        subdir="linux-64",
        build_hash="bbbbbbb",
        core_hash="ccccccc",
        python="cp312",
        linalg_apart=True,
        number=3,
    )
    package, libraries, linalg = (
        describe(kind, build) for kind in (CondaKind.PACKAGE, CondaKind.LIBRARIES, CondaKind.LINALG)
    )
    assert (package.number, libraries.number, linalg.number) == (130303, 130303, 130313)
    assert package.build == "cuda130_mkl_py312_hbbbbbbb_130303"
    assert f"libtorch ==2.14.0 {libraries.build}" in package.depends
    assert f"libtorch ==2.14.0 {libraries.build}" in linalg.depends
