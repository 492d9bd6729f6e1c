"""Packages with wrong metadata, tags, or lists of files."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from tests.mutations.good import COMMIT, MACHINE, MODULE, PLATFORM
from tests.mutations.mutation import (
    PATHS,
    Break,
    Mutation,
    conda_edited,
    conda_members,
    conda_zipped,
    find,
    members,
    removing,
    renamed,
    replacing,
    rewritten,
)

from torchyard.package.sbom.component import SBOM_FILE

ABOUT = "tinytorch-1.2.0+cpu.dist-info"
INDEX = "info/index.json"
LIBRARY = "lib/libc10.so"
LICENSE = "info/licenses/LICENSE"
ABI = "python_abi"
MODULE_311 = f"tinytorch/_C.cpython-311-{MACHINE}-linux-gnu.so"
CONDA = f"lib/python3.12/site-packages/tinytorch/{MODULE}"


def for_python_313(metadata: Callable[[str], str]) -> Break:
    """The same wheel for another Python, with other metadata."""

    def make(good: Path, folder: Path) -> Path:
        content = members(good)
        texts = {name: content[f"{ABOUT}/{name}"].decode() for name in ("METADATA", "WHEEL")}
        edits = {
            f"tinytorch/{MODULE}": None,
            f"tinytorch/{MODULE.replace('312', '313')}": content[f"tinytorch/{MODULE}"],
            f"{ABOUT}/METADATA": metadata(texts["METADATA"]).encode(),
            f"{ABOUT}/WHEEL": texts["WHEEL"].replace("cp312", "cp313").encode(),
        }
        return rewritten(good, folder, edits, good.name.replace("cp312", "cp313"))

    return make


def without_bills(good: Path, folder: Path) -> Path:
    return rewritten(good, folder, {name: None for name in members(good) if "/sboms/" in name})


def for_any_platform(good: Path, folder: Path) -> Path:
    content = members(good)
    wheel = content[f"{ABOUT}/WHEEL"].replace(PLATFORM.encode(), b"any")
    name = good.name.replace(PLATFORM, "any")
    return rewritten(good, folder, {f"{ABOUT}/WHEEL": wheel}, name)


def for_no_python(good: Path, folder: Path) -> Path:
    """Tags that agree with each other in name and WHEEL, of two Pythons."""
    old, new = "cp312-cp312", "cp311-cp312"
    wheel = members(good)[f"{ABOUT}/WHEEL"].replace(old.encode(), new.encode())
    return rewritten(good, folder, {f"{ABOUT}/WHEEL": wheel}, good.name.replace(old, new))


def with_other_module(good: Path, folder: Path) -> Path:
    module = f"tinytorch/{MODULE}"
    edits = {module: None, MODULE_311: members(good)[module]}
    return rewritten(good, folder, edits)


def larger(good: Path, folder: Path) -> Path:
    return rewritten(good, folder, {"tinytorch/weights": os.urandom(1 << 20)})


def with_paths(change: Callable[[list[dict[str, str | int]]], None]) -> Break:
    """Change what `info/paths.json` lists."""

    def make(good: Path, folder: Path) -> Path:
        listed = json.loads(conda_members(good)[PATHS])
        change(listed["paths"])
        return conda_edited({PATHS: json.dumps(listed).encode()})(good, folder)

    return make


def of_library(field: str, value: str | int) -> Break:
    def change(rows: list[dict[str, str | int]]) -> None:
        (row,) = (row for row in rows if row["_path"] == LIBRARY)
        row[field] = value

    return with_paths(change)


def with_index(field: str, value: str, *name: str) -> Break:
    """Change a field of the index; with two names, also the name of the file."""

    def make(good: Path, folder: Path) -> Path:
        index = json.loads(conda_members(good)[INDEX])
        assert index.get(field) != value
        edited = json.dumps({**index, field: value}).encode()
        old, new = name or ("", "")
        return conda_edited({INDEX: edited}, good.name.replace(old, new, 1))(good, folder)

    return make


def with_depends(specs: dict[str, str | None]) -> Break:
    """Require other versions of these packages; None requires them no more."""

    def make(good: Path, folder: Path) -> Path:
        index = json.loads(conda_members(good)[INDEX])
        kept = [depend for depend in index["depends"] if depend.partition(" ")[0] not in specs]
        new = [f"{name} {spec}".strip() for name, spec in specs.items() if spec is not None]
        edited = json.dumps({**index, "depends": [*kept, *new]}).encode()
        return conda_edited({INDEX: edited})(good, folder)

    return make


def without_libraries(good: Path, folder: Path) -> Path:
    """A conda package that does not depend on the one with its libraries."""
    index = json.loads(conda_members(good)[INDEX])
    index["depends"] = [need for need in index["depends"] if not need.startswith("libtinytorch")]
    return conda_edited({INDEX: json.dumps(index).encode()})(good, folder)


def deflated(good: Path, folder: Path) -> Path:
    """Compressed twice."""
    with ZipFile(folder / good.name, "w", ZIP_DEFLATED) as archive:
        for name, data in members(good).items():
            archive.writestr(name, data)
    return folder / good.name


def conda_renamed(old: str, new: str) -> Break:
    """Another file name, which its parts follow."""
    return lambda good, folder: conda_edited({}, good.name.replace(old, new))(good, folder)


def conda_replacing(ending: str, old: str, new: str) -> Break:
    def make(good: Path, folder: Path) -> Path:
        content = conda_members(good)
        name = find(content, ending)
        changed = content[name].replace(old.encode(), new.encode())
        assert changed != content[name]
        return conda_edited({name: changed})(good, folder)

    return make


def with_part(change: Callable[[bytes], bytes]) -> Break:
    """Change the compressed files of a conda package, in an archive that is sound."""

    def make(good: Path, folder: Path) -> Path:
        content = members(good)
        name = next(name for name in content if name.startswith("pkg-"))
        return conda_zipped({**content, name: change(content[name])}, folder / good.name)

    return make


def with_changed_library(good: Path, folder: Path) -> Path:
    """A library that was changed after the list had been written."""
    content = conda_members(good)
    edits = {LIBRARY: content[LIBRARY] + b"more", PATHS: content[PATHS]}
    return conda_edited(edits)(good, folder)


def in_half(good: Path, folder: Path) -> Path:
    data = good.read_bytes()
    path = folder / good.name
    path.write_bytes(data[: len(data) // 2])
    return path


def as_zip(good: Path, folder: Path) -> Path:
    path = folder / "tinytorch.zip"
    path.write_bytes(good.read_bytes())
    return path


def with_text_only(good: Path, folder: Path) -> Path:
    with ZipFile(folder / "random.zip", "w") as archive:
        archive.writestr("random/code.py", "print()\n")
    return folder / "random.zip"


def _wheel(name: str, rule: str, make: Break, *also: str, good: str = "wheel") -> Mutation:
    return Mutation(name, good, rule, make, also)


def _conda(name: str, rule: str, make: Break, *also: str) -> Mutation:
    return Mutation(name, "conda-libraries", rule, make, also)


def _package(name: str, rule: str, make: Break) -> Mutation:
    return Mutation(name, "conda", rule, make, beside=("conda-libraries",))


def _with_second_about(good: Path, folder: Path) -> Path:
    return rewritten(good, folder, {"old-1.0.dist-info/METADATA": b"Name: old\n"})


TEXTS = [
    _wheel("two dist-info folders", "dist-info", _with_second_about),
    _wheel("renamed version", "dist-info", renamed("1.2.0", "1.3.0"), "metadata-name"),
    _wheel("renamed project", "dist-info", renamed("tinytorch", "torchtiny"), "metadata-name"),
    _wheel("no WHEEL", "wheel-file", removing("/WHEEL")),
    _wheel(
        "purelib with libraries", "wheel-purelib", replacing("/WHEEL", "lib: false", "lib: true")
    ),
    _wheel(
        "wheel of the future", "wheel-file", replacing("/WHEEL", "Version: 1.0", "Version: 2.0")
    ),
    _wheel("other Python in the name", "wheel-tags", renamed("cp312-cp312", "cp311.cp312-cp312")),
    _wheel("other ABI in the name", "wheel-tags", renamed("-cp312-m", "-cp311-m"), "label-python"),
    _wheel("other glibc in the name", "wheel-tags", renamed("_2_28_", "_2_34_")),
    _wheel("other tag in WHEEL", "wheel-tags", replacing("/WHEEL", "Tag: cp312", "Tag: cp311")),
    _wheel("no tag in WHEEL", "wheel-tags", replacing("/WHEEL", "Tag: cp312-cp312-", "X-Tag: ")),
    _wheel("name of no wheel", "metadata-name", renamed("-cp312-cp312-", "-")),
    _wheel("no METADATA", "metadata-valid", removing("/METADATA")),
    _wheel("no name", "metadata-valid", replacing("/METADATA", "Name: tinytorch\n", "")),
    _wheel("bad requirement", "metadata-valid", replacing("/METADATA", "numpy>=2", "numpy=>2")),
    _wheel("line that is no field", "metadata-valid", replacing("/METADATA", "Name:", "Name")),
    _wheel(
        "other version in METADATA",
        "metadata-name",
        replacing("/METADATA", "1.2.0+cpu", "1.2.1+cpu"),
        "label-version",
    ),
    Mutation(
        "requirement of one sibling only",
        "wheel",
        "metadata-siblings",
        for_python_313(lambda text: text.replace("numpy>=2", "numpy>=3")),
        beside=("wheel",),
    ),
    _wheel("no bill of materials", "sbom-missing", without_bills, "sbom-wrong"),
    _wheel("bill of materials removed", "sbom-wrong", removing(SBOM_FILE)),
    _wheel("bill of materials damaged", "sbom-wrong", replacing(SBOM_FILE, "CycloneDX", "SPDX")),
    _wheel("bill of another package", "sbom-wrong", replacing(SBOM_FILE, "libgomp", "libmoon")),
    _wheel("over its budget", "size-budget", larger),
    _wheel("libraries in a wheel for any platform", "label-any", for_any_platform),
    _wheel("module of another Python", "label-python", with_other_module),
    _wheel("tags of two Pythons", "label-python", for_no_python),
    _wheel("version.py lies", "label-version", replacing("version.py", "'1.2.0+", "'1.2.9+")),
    _wheel("no commit", "label-version", replacing("version.py", f"'{COMMIT}'", "'Unknown'")),
    _wheel(
        "build-version lies", "label-version", replacing("build-version", "1.2", "1.3"), good="zip"
    ),
    _wheel(
        "build-hash is none", "label-version", replacing("build-hash", COMMIT, "main"), good="zip"
    ),
    _conda("wrong digest in paths.json", "conda-paths", of_library("sha256", "0" * 64)),
    _conda("wrong size in paths.json", "conda-paths", of_library("size_in_bytes", 7)),
    _conda("no such file", "conda-paths", of_library("_path", "lib/lost.so")),
    _conda("a file that is not listed", "conda-paths", conda_edited({"lib/more.txt": b"more"})),
    _conda("listed twice", "conda-paths", with_paths(lambda rows: rows.append(rows[0]))),
    _conda("no list of files", "conda-paths", conda_edited({PATHS: None})),
    _conda("list that is none", "conda-paths", conda_edited({PATHS: b"[}"})),
    _conda("other name in the index", "label-name", with_index("name", "libtorch")),
    _conda("other build in the index", "label-name", with_index("build", "0")),
    _conda("renamed conda package", "label-name", conda_renamed("1.2.0", "1.2.1")),
    _conda("no subdir", "label-name", with_index("subdir", "")),
    _conda("another subdir", "label-platform", with_index("subdir", "osx-arm64")),
    _conda("conda package cut in the middle", "archive-structure", in_half),
    _conda("changed library", "conda-paths", with_changed_library),
    _conda("damaged files", "archive-structure", with_part(lambda data: b"?" + data[1:])),
    _conda("files cut off", "archive-structure", with_part(lambda data: data[:-200])),
    _conda(
        "renamed without its parts", "archive-structure", renamed("1.2.0", "1.2.1"), "label-name"
    ),
    _conda("compressed twice", "archive-structure", deflated),
    _conda(
        "name that leads out of conda",
        "archive-names",
        conda_edited({"../evil": b""}),
        "conda-paths",
    ),
    Mutation("old conda package cut off", "conda-old", "archive-structure", in_half),
    Mutation("wheel that is called a zip", "wheel", "label-zip", as_zip),
    Mutation("zip with nothing of libtorch", "zip", "label-zip", with_text_only),
    Mutation(
        "sibling undeclared in conda",
        "conda",
        "linking-undeclared",
        without_libraries,
        beside=("conda-libraries",),
    ),
    Mutation(
        "conda's version.py lies",
        "conda",
        "label-version",
        conda_replacing("version.py", "1.2.0", "1.2.9"),
        beside=("conda-libraries",),
    ),
    _conda(
        "prefix of the build in conda",
        "leaked-prefix",
        conda_replacing("Config.cmake", "${ROOT}/include", "/opt/b/_h_env_placehold_placehold/i"),
    ),
    _package("other Python required", "conda-python", with_depends({"python": "3.11.*"})),
    _package("no Python required", "conda-python", with_depends({"python": None, ABI: None})),
    _package("any Python allowed", "conda-python", with_depends({"python": "", ABI: None})),
    _package(
        "newer Pythons allowed", "conda-python", with_depends({"python": ">=3.12", ABI: None})
    ),
    _conda("runtime undeclared", "conda-runtime", with_depends({"libstdcxx": None})),
    _conda("license not named", "conda-license", conda_replacing(INDEX, '"MIT"', "null")),
    _conda("license without its text", "conda-license", conda_edited({LICENSE: None})),
    _conda(
        "path of the build machine in conda",
        "leaked-path",
        conda_replacing("Config.cmake", "${ROOT}/include", "/root/include"),
    ),
]
