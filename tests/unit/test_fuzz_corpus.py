"""Inputs that the fuzzer has found worth keeping, tried again without it; see tests/fuzz/run.py."""

import tracemalloc
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from tests.fuzz import corpus
from tests.fuzz.corpus import ARCHIVE, read_inputs
from tests.fuzz.laws import MOST_MEMORY

FUZZ = Path(__file__).parents[1] / "fuzz"
TARGETS = sorted(path.stem.removeprefix("fuzz_") for path in FUZZ.glob("fuzz_*.py"))


def try_of(target: str) -> Callable[[bytes], None]:
    try_one: Callable[[bytes], None] = import_module(f"tests.fuzz.fuzz_{target}").try_one
    try_one(b"")
    return try_one


@pytest.mark.parametrize("target", TARGETS)
def test_the_corpus_holds(target: str) -> None:
    try_one = try_of(target)
    inputs = read_inputs(target)
    assert inputs
    for name, data in inputs.items():
        try:
            try_one(data)
        except Exception as error:
            error.add_note(f"raised by {name} of {ARCHIVE}")
            raise


FOUND = sorted((FUZZ / "found").glob("*/*"))


@pytest.mark.parametrize("path", FOUND, ids=[f"{p.parent.name}/{p.name}" for p in FOUND])
def test_what_once_broke_something_holds(path: Path) -> None:
    try_one = try_of(path.parent.name)
    tracemalloc.start()
    try:
        try_one(path.read_bytes())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= MOST_MEMORY


def test_the_corpus_is_small() -> None:
    sizes = [len(data) for target in TARGETS for data in read_inputs(target).values()]
    assert max(sizes) <= 4 << 10
    assert sum(sizes) <= 1 << 20


def test_a_targets_inputs_are_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "ARCHIVE", tmp_path / "corpus.zip")
    for target, data in (("elf", b"old"), ("zip", b"other"), ("elf", b"new")):
        folder = tmp_path / data.decode()
        folder.mkdir()
        (folder / data.decode()).write_bytes(data)
        corpus.replace_inputs(target, folder)
    assert read_inputs("elf") == {"new": b"new"}
    assert read_inputs("zip") == {"other": b"other"}
