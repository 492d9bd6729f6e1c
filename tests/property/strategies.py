"""Configurations of every shape, as plain dictionaries."""

from typing import Any

from hypothesis import strategies as st

from torchyard.config.tables import load_tables

Config = dict[str, Any]  # type: ignore[explicit-any] # what a TOML file holds

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
    return st.lists(st.one_of(st.sampled_from(values), cut), min_size=1, max_size=2, unique=True)


def partial_cells(*, without: tuple[str, ...] = ()) -> st.SearchStrategy[Config]:
    keys = [key for key in VALUES if key not in without]
    return st.fixed_dictionaries({}, optional={key: globs(VALUES[key]) for key in keys}).filter(
        bool
    )


def rules() -> st.SearchStrategy[list[Config]]:
    return st.lists(partial_cells().map(lambda cell: {**cell, "reason": "because"}), max_size=3)


def inclusions() -> st.SearchStrategy[list[Config]]:
    full = st.fixed_dictionaries({}, optional={key: some(v) for key, v in VALUES.items()})
    rule = full.filter(bool).map(lambda cell: {**cell, "reason": "wanted"})
    return st.lists(rule, max_size=2)


def overrides() -> st.SearchStrategy[list[Config]]:
    """Overrides that commute: each sets a variable of its own."""
    core = partial_cells(without=("python", "package")).map(lambda c: {**c, "stage": "core"})
    package = partial_cells().map(lambda c: {**c, "stage": ["package", "smoke"]})
    several = st.lists(st.one_of(core, package), max_size=3)
    return several.map(lambda found: [{**o, "env": {f"V{n}": str(n)}} for n, o in enumerate(found)])


@st.composite
def configs(draw: st.DrawFn) -> Config:
    """A whole configuration; it may well be an empty matrix."""
    matrix: Config = {key: draw(some(values)) for key, values in VALUES.items()}
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
    matrix["exclude"] = draw(rules())
    matrix["include"] = draw(inclusions())
    return {
        "project": {"name": "torch", "version": "2.14.0"},
        "source": {"git": "https://example.org/pytorch", "rev": "v2.14.0"},
        "matrix": matrix,
        "override": draw(overrides()),
    }
