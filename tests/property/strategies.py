"""Hypothesis strategies for configurations, as plain dictionaries."""

from typing import Any

from hypothesis import strategies as st

from torchyard.config.tables import load_tables
from torchyard.model.matrix import any_match

Toml = dict[str, Any]  # type: ignore[explicit-any] # what a TOML file holds

TABLES = load_tables()
VALUES = {
    "platform": ["linux-x86_64", "linux-aarch64", "windows-x86_64", "macos-arm64"],
    "compute": ["cpu", "cu126", "cu130", "rocm7.2", "xpu"],
    "blas": ["mkl", "openblas", "generic", "accelerate"],
    "python": ["cp310", "cp311", "cp312", "cp313", "cp314t"],
    "package": ["wheel", "libtorch", "conda", "conda-libtorch"],
}


def some(values: list[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(values), min_size=1, max_size=len(values), unique=True)


def globs(values: list[str]) -> st.SearchStrategy[list[str]]:
    """Lists of globs that match at least one value: words, and words cut short with a star."""
    cut = st.sampled_from(values).flatmap(
        lambda word: st.integers(0, len(word)).map(lambda length: word[:length] + "*")
    )
    asked = st.sampled_from(values).map(lambda word: word[:-1] + "?")
    words = st.one_of(st.sampled_from(values), cut, asked)
    return st.lists(words, min_size=1, max_size=2, unique=True)


def partial_cells(*, without: tuple[str, ...] = ()) -> st.SearchStrategy[Toml]:
    keys = [key for key in VALUES if key not in without]
    return st.fixed_dictionaries({}, optional={key: globs(VALUES[key]) for key in keys}).filter(
        bool
    )


def rules() -> st.SearchStrategy[list[Toml]]:
    return st.lists(partial_cells().map(lambda cell: {**cell, "reason": "because"}), max_size=3)


def inclusions() -> st.SearchStrategy[list[Toml]]:
    plain = {key: some(values) for key, values in VALUES.items()}
    full = st.one_of(st.fixed_dictionaries({}, optional=plain), partial_cells())
    rule = full.filter(bool).map(lambda cell: {**cell, "reason": "wanted"})
    return st.lists(rule, max_size=2)


def finds_something(rule: Toml, listed: dict[str, list[str]]) -> bool:
    """Whether each dimension of an inclusion names a value, or matches one of the matrix."""
    return all(
        any(v in rule[key] or (v in values and any_match(v, rule[key])) for v in VALUES[key])
        for key, values in listed.items()
        if key in rule
    )


def overrides() -> st.SearchStrategy[list[Toml]]:
    """Overrides that commute: each sets a variable of its own."""
    core = partial_cells(without=("python", "package")).map(lambda c: {**c, "stage": "core"})
    bound = partial_cells(without=("package",)).map(lambda c: {**c, "stage": "bindings"})
    package = partial_cells().map(lambda c: {**c, "stage": ["package", "smoke"]})
    several = st.lists(st.one_of(core, bound, package), max_size=3)
    return several.map(lambda found: [{**o, "env": {f"V{n}": str(n)}} for n, o in enumerate(found)])


def subsets() -> st.SearchStrategy[Toml]:
    cells = st.lists(st.sampled_from(["cpu", "cp31*", "*/linux-*", "*wheel"]), min_size=1)
    named = cells.map(lambda found: {"cells": found})
    return st.one_of(partial_cells(), named)


@st.composite
def configs(draw: st.DrawFn) -> Toml:
    """A whole configuration; it may well be an empty matrix."""
    matrix: Toml = {key: draw(some(values)) for key, values in VALUES.items()}
    if draw(st.booleans()):
        first, second = draw(
            st.sampled_from([("platform", "blas"), ("compute", "python"), ("python", "blas")])
        )
        rows = draw(
            st.lists(
                st.tuples(st.sampled_from(VALUES[first]), st.sampled_from(VALUES[second])),
                min_size=1,
                max_size=5,
                unique=True,
            )
        )
        del matrix[first], matrix[second]
        matrix["couple"] = [{first: [a for a, _ in rows], second: [b for _, b in rows]}]
    listed = {key: matrix.get(key, []) for key in VALUES}
    for couple in matrix.get("couple", ()):
        listed |= couple
    matrix["exclude"] = draw(rules())
    matrix["include"] = [rule for rule in draw(inclusions()) if finds_something(rule, listed)]
    return {
        "project": {"name": "torch", "version": "2.14.0"},
        "source": {"git": "https://example.org/pytorch", "rev": "v2.14.0"},
        "matrix": matrix,
        "override": draw(overrides()),
        "subset": {"some": draw(subsets())},
        "channel": {"all": {"url": "file:///all"}, "part": {"url": "file:///p", "subset": "some"}},
    }
