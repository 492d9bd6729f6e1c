"""Good packages that a job for something else delivers."""

from pathlib import Path

from tests.mutations.good import MACHINE, job_for
from tests.mutations.mutation import Mutation

WHEEL = f"tinytorch-1.2.0/linux-{MACHINE}/cpu-openblas/cp312/wheel"
ZIP = f"tinytorch-1.2.0/linux-{MACHINE}/cpu-openblas/any/libtorch"
CONDA = f"tinytorch-1.2.0/linux-{MACHINE}/cpu-openblas/cp312/conda"
LIBRARIES = f"tinytorch-1.2.0/linux-{MACHINE}/cpu-openblas/any/conda-libtorch"
OWN = {"wheel": WHEEL, "zip": ZIP, "conda": CONDA, "conda-libraries": LIBRARIES}
"""The cells of good packages."""


STABLE_JOB = job_for(f"tinyext-0.1/linux-{MACHINE}/cpu-torch2.10/cp310/wheel", {"abi": "both"})
"""The job of the extension's wheel, which is to serve all later Pythons and torches."""


def as_it_is(good: Path, folder: Path) -> Path:
    path = folder / good.name
    path.write_bytes(good.read_bytes())
    return path


def _delivered(good: str, old: str, new: str, *also: str) -> Mutation:
    """A good package by a job of a cell that differs from its own."""
    cell = OWN[good].replace(old, new)
    assert cell != OWN[good]
    name = f"{good} by a job for {new}"
    return Mutation(name, good, "label-cell", as_it_is, also, spec=job_for(cell))


GPU = (
    "compute-archs",
    "label-compute",
    "label-libraries",
    "linking-rpath",
    "linking-rpath-kind",
)

SPECS = [
    _delivered("wheel", "tinytorch-", "torchtiny-"),
    _delivered("wheel", "1.2.0", "1.2.1"),
    _delivered("wheel", "cp312", "cp311"),
    _delivered("wheel", f"linux-{MACHINE}", "macos-arm64"),
    _delivered("wheel", "/cpu-", "/cu126-", *GPU),
    _delivered("wheel", "/wheel", "/conda"),
    _delivered("zip", "1.2.0", "1.3.0"),
    _delivered("zip", "tinytorch-", "torchtiny-"),
    _delivered("zip", f"linux-{MACHINE}", "windows-x86_64"),
    _delivered("conda", "cp312", "cp313"),
    _delivered("conda", f"linux-{MACHINE}", "macos-arm64"),
    _delivered("conda", "/conda", "/conda-tests"),
    _delivered("conda-libraries", "/conda-libtorch", "/conda-meta"),
]
