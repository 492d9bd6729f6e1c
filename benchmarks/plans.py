"""A plan of more than 100,000 jobs: prints their number, CPU seconds and peak memory as JSON.

The largest matrix that torchyard's tables allow has about 11,000 jobs (recipe `extension`).
"""

import json
import resource
from time import process_time

from torchyard.model.config import Config, Project, Source
from torchyard.model.matrix import Exclusion, Matrix, Override, Pattern
from torchyard.model.recipe import Dimension, Recipe, Stage
from torchyard.model.tables import Compute, Format, PackageKind, Platform, Python, Tables
from torchyard.model.values import Origin
from torchyard.plan.build import make_plan

SIZES = (10, 10, 4, 18, 5)
"""How many platforms, computes, BLAS, Pythons and packages there are."""
SOURCE = Source(git="https://example.org/pytorch", rev="v1")


def values(sizes: tuple[int, ...]) -> tuple[tuple[str, ...], ...]:
    words = ("platform", "compute", "blas", "cp", "package")
    return tuple(
        tuple(f"{word}{number}" for number in range(size))
        for word, size in zip(words, sizes, strict=True)
    )


RECIPE = Recipe(
    name="pytorch",
    title="a benchmark",
    variant=Dimension.BLAS,
    stages=tuple(Stage),
)


def tables(sizes: tuple[int, ...]) -> Tables:
    platforms, computes, blas, pythons, packages = values(sizes)
    platform = Platform(wheel_tag="any", conda_subdir="any", blas=blas)
    return Tables(
        platforms=dict.fromkeys(platforms, platform),
        pythons={name: Python(version="3") for name in pythons},
        formats={"conda": Format(implementation="", library_pins=False, channels=True, split=True)},
        packages={
            name: PackageKind(
                title=name,
                format="conda",
                per_python=True,
                pinned=False,
            )
            for name in packages
        },
        compute={
            name: Compute(platform=name, source="", pinned=False, platforms=platforms)
            for name in computes
        },
        releases={},
    )


def config(sizes: tuple[int, ...], *, rules: bool) -> Config:
    """Return a config of these sizes, optionally with exclusions and an override."""
    origin = Origin("benchmark")
    patterns = (
        Pattern(platform=("platform1",), python=("cp1?",)),
        Pattern(compute=("compute7*",), package=("package4",)),
    )
    override = Override(
        pattern=Pattern(compute=("compute1*",)), stages=(Stage.CORE,), origin=origin, env={"A": "1"}
    )
    return Config(
        project=Project(name="torch", version="1", recipe=RECIPE, release="1"),
        source=SOURCE,
        matrix=Matrix(
            values=values(sizes),
            exclude=tuple(
                Exclusion(pattern=pattern, reason="to be quicker", origin=origin)
                for pattern in patterns
                if rules
            ),
        ),
        overrides=(override,) if rules else (),
        tables=tables(sizes),
    )


def main() -> None:
    large = config(SIZES, rules=True)
    start = process_time()
    jobs = len(make_plan(large))
    seconds = process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"jobs": jobs, "seconds": seconds, "memory": memory}))


if __name__ == "__main__":
    main()
