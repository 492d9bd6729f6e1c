"""Inputs that the fuzzer has found worth keeping, tried again without it; see tests/fuzz/run.py."""

import tracemalloc
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
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
    inputs = sorted((FUZZ / "corpus" / target).iterdir())
    assert inputs
    for path in inputs:
        try:
            try_one(path.read_bytes())
        except Exception as error:
            error.add_note(f"this comes of {path}")
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
    sizes = [path.stat().st_size for path in (FUZZ / "corpus").glob("*/*")]
    assert max(sizes) <= 4 << 10
    assert sum(sizes) <= 1 << 20
