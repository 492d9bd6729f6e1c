"""Packages of the sample project, beside those that rattler-build makes of the same files.

The recipes are as in a feedstock: compilers in `build`, Python in `host`, pins and tests. Each
difference is a decision, and a row of the table in docs/evidence/conda.md.
"""

import json
import re
import shutil
import tarfile
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

import pytest
from rattler_build import Stage0Recipe, ToolConfiguration
from tests.mutations.zstd import decompress
from tests.support.conda_forge import MISSING, conda_forge
from tests.support.helpers import ROOT
from tests.support.recipe import PREFIX, copy_sample

from torchyard.package.contents import Contents
from torchyard.package.read import read_package

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING) or not shutil.which("gcc"), reason=MISSING or "no gcc here"),
]

PAGE = ROOT / "docs/evidence/conda.md"
DECISIONS = {
    "index: build": "both are digests of what the package is made of",
    "index: timestamp": "equal inputs give equal bytes; numbers say which build is preferred",
    "index: depends": "what symbols need, not what the compiler is; glibc is always required",
    "index: constrains": "the libraries exclude Python packages of other builds, too",
    "about: channels": "a build needs no channel",
    "run exports": "what is compiled against the package links its libraries, too",
    "files": "Python writes bytecode itself; packages are made on machines without that Python",
    "rpath": 'LD_LIBRARY_PATH comes first, as in wheels; `libraries = "channel"` gives an RPATH',
    "info": "its job rebuilds it, and it says what is bundled; tests are by `[conda.outputs]`",
    "licenses": "texts of bundled libraries come with them",
}
"""Why a field differs."""


class Recipe(NamedTuple):
    """The parts of a feedstock's recipe that differ between outputs."""

    name: str
    host: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    constrains: tuple[str, ...] = ()
    test: Mapping[str, object] = {}


RECIPES = (
    Recipe(
        "libtinytorch",
        constrains=("tinytorch-cpu ==1.2.0", "tinytorch-gpu <0.0a0"),
        test={"package_contents": {"files": ["lib/libtt_cpu.so"]}},
    ),
    Recipe(
        "tinytorch",
        host=("python 3.11.*",),
        run=("python", "typing_extensions >=4.10"),
        constrains=("tinytorch-cpu ==1.2.0", "tinytorch-gpu <0.0a0"),
        test={"python": {"imports": ["tinytorch"]}},
    ),
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages as torchyard makes them."""
    project = copy_sample(tmp_path_factory.mktemp("fields") / "tinytorch")
    cells = ("cp311/conda", "any/conda-libtorch")
    jobs = [f"package:{PREFIX}/cpu-openblas/{cell}" for cell in cells]
    project.torchyard("build", *jobs, "-o", project.folder / "made")
    return project.folder / "made"


def by_recipe(recipe: Recipe, package: Path, folder: Path) -> Path:
    """Make a package of the same files by rattler-build."""
    tree, beside = folder / "files", folder / "recipe"
    beside.mkdir()
    with ZipFile(package) as archive:
        (part,) = (name for name in archive.namelist() if name.startswith("pkg-"))
        with tarfile.open(fileobj=BytesIO(decompress(archive.read(part)))) as files:
            files.extractall(tree, filter="fully_trusted")  # noqa: S202 - it is our own
    shutil.copy(ROOT / "tests/projects/tinytorch/LICENSE", beside)
    pin = f"${{{{ pin_subpackage('{recipe.name}', upper_bound='x.x') }}}}"
    own = [spec for spec in depends(read_package(package)) if spec.startswith("libtinytorch")]
    made = Stage0Recipe.from_dict(
        {
            "package": {"name": recipe.name, "version": "1.2.0"},
            "build": {"script": [f"cp -a {tree}/. $PREFIX/"]},
            "requirements": {
                "build": ["gxx_linux-64"],
                "host": [*recipe.host],
                "run": [*recipe.run, *own],
                "run_constraints": [*recipe.constrains],
                "run_exports": {"weak": [pin]},
            },
            "tests": [recipe.test],
            "about": {
                "license": "BSD-3-Clause",
                "license_file": "LICENSE",
                "summary": "A very small library with the shape of PyTorch",
            },
        },
        recipe_dir=beside,
    )
    made.run_build(
        tool_config=ToolConfiguration(test_strategy="skip"),
        output_dir=folder / "out",
        channels=[conda_forge().as_uri()],
    )
    (found,) = folder.glob(f"out/linux-64/{recipe.name}-*.conda")
    return found


def _without_folder(word: str) -> str:
    """Return the name of a channel, or another word as it is."""
    return word.rstrip("/").rpartition("/")[2] if word.startswith("file:") else word


def document(package: Contents, name: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(package.texts.get(f"info/{name}.json", b"{}"))
    return found


def depends(package: Contents) -> list[str]:
    return [str(spec) for spec in document(package, "index")["depends"]]  # type: ignore[attr-defined]


def fields(package: Contents) -> Iterator[tuple[str, object]]:
    """Yield what a package says of itself, and what is in it, by field."""
    for name in ("index", "about"):
        for key, value in document(package, name).items():
            words = [str(word) for word in value] if isinstance(value, list) else []
            yield f"{name}: {key}", sorted(map(_without_folder, words)) or value
    yield "run exports", document(package, "run_exports").get("weak")
    inside = [name.partition("/")[2] for name in package.files if name.startswith("info/")]
    yield "info", sorted({name.partition("/")[0] for name in inside} - {"licenses"})
    yield "licenses", sorted(name for name in inside if name.startswith("licenses/"))
    installed = {name: f for name, f in package.files.items() if not name.startswith("info/")}
    yield "files", sorted(name.rpartition("/")[2] for name in installed)
    yield "bytes", {name: f.digest for name, f in installed.items() if not f.binary}
    binaries = [file.binary for file in installed.values() if file.binary]
    kinds = {"RUNPATH" if binary.runpath else "RPATH" for binary in binaries if binary.needed}
    yield "rpath", sorted(kinds)


def shown(value: object, other: object) -> str:
    """Return a value for the table; of lists, what the other one has not."""
    if isinstance(value, list):
        rest = [item for item in value if not isinstance(other, list) or item not in other]
        words = [re.sub(r"(__glibc >=)[\d.]+", r"\1…", str(item)) for item in rest]
        text = ", ".join(f"`{word}`" for word in words)
        return re.sub(r"_h[0-9a-f]{7}_", "_h…_", text) or "–"
    return "–" if value is None else f"`{re.sub(r'h[0-9a-f]{7}|[0-9]{13}', '…', str(value))}`"


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_each_difference_is_a_decision(built: Path, recipe: Recipe, tmp_path: Path) -> None:
    (package,) = built.glob(f"{recipe.name}-1*.conda")
    ours = dict(fields(read_package(package)))
    theirs = dict(fields(read_package(by_recipe(recipe, package, tmp_path))))
    names = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    if "files" in names:  # bytecode is in one only
        more = theirs["bytes"].keys() - ours["bytes"].keys()  # type: ignore[attr-defined]
        assert all(name.endswith(".pyc") for name in more)
        names.remove("bytes")
    rows = [
        f"| {recipe.name} | {name} | {shown(ours.get(name), theirs.get(name))} "
        f"| {shown(theirs.get(name), ours.get(name))} | {DECISIONS[name]} |"
        for name in names
    ]
    text = PAGE.read_text(encoding="utf-8")
    assert [row for row in rows if row not in text] == []
    table = re.findall(rf"^\| {recipe.name} \| .*$", text, re.MULTILINE)
    assert len(table) == len(rows), "the table has rows that are not true any more"
