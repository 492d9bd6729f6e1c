"""A matrix of a million jobs: planned by torchyard, or hashed by a loop that does nothing else.

`python million.py plan|bare` prints jobs, CPU seconds and peak memory. Before either is timed,
the loop is shown to hash the same bytes: on a small matrix it ends with the same fingerprints.
"""

import json
import resource
import sys
from hashlib import sha256
from time import process_time

from torchyard import __version__
from torchyard.model.config import Config, Project, Source
from torchyard.model.matrix import Exclusion, Matrix, Override, Pattern
from torchyard.model.recipe import RECIPES, Stage
from torchyard.model.tables import Format, PackageKind, Plain, Platform, Python, Tables
from torchyard.model.values import Origin
from torchyard.plan.build import make_plan

SIZES = (10, 93, 4, 18, 5)
SMALL = (2, 3, 2, 3, 2)
SOURCE = Source(git="https://example.org/pytorch", rev="v1")


def values(sizes: tuple[int, ...]) -> tuple[tuple[str, ...], ...]:
    words = ("platform", "compute", "blas", "cp", "package")
    return tuple(
        tuple(f"{word}{number}" for number in range(size))
        for word, size in zip(words, sizes, strict=True)
    )


def tables(sizes: tuple[int, ...]) -> Tables:
    platforms, computes, blas, pythons, packages = values(sizes)
    platform = {"wheel_tag": "any", "conda_subdir": "any"}
    return Tables(
        platforms={name: Platform(**platform, blas=blas) for name in platforms},
        pythons={name: Python(version="3") for name in pythons},
        formats={"conda": Format(library_pins=False, channels=True, split=True)},
        packages={
            name: PackageKind(
                title=name,
                format="conda",
                per_python=True,
                pinned=False,
                recipes=("pytorch",),
            )
            for name in packages
        },
        cuda={},
        rocm={},
        plain={name: Plain(pinned=False, platforms=platforms) for name in computes},
        releases={},
    )


def config(sizes: tuple[int, ...], *, rules: bool) -> Config:
    """A config of these sizes; with rules as a real one has: some exclusions, some overrides."""
    origin = Origin("benchmark")
    patterns = (
        Pattern(platform=("platform1",), python=("cp1?",)),
        Pattern(compute=("compute7*",), package=("package4",)),
    )
    override = Override(
        pattern=Pattern(compute=("compute1*",)), stages=(Stage.CORE,), origin=origin, env={"A": "1"}
    )
    return Config(
        project=Project(name="torch", version="1", recipe=RECIPES["pytorch"], release="1"),
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
    )


def bare(sizes: tuple[int, ...]) -> tuple[int, tuple[str, ...]]:
    """Make the product and hash each job's canonical bytes; count them, keep only the last ones."""
    platforms, computes, blas, pythons, packages = values(sizes)
    recipe = '"recipe":"pytorch"'
    end = '"stage_revision":1}'
    facts = f'{{"git":"{SOURCE.git}","rev":"{SOURCE.rev}","submodules":true}}'
    built = '{"name":"torch","version":"1"}'
    packed = '{"format":"conda","subdir":"any"}'
    checked = f'{{"policy":"default","torchyard":"{__version__}"}}'
    tried = f'{{"level":"full","torchyard":"{__version__}"}}'
    source = sha256(
        f'{{"inputs":[],{recipe},"scope":"","settings":{facts},"stage":"source",{end}'.encode()
    ).hexdigest()
    count = 1
    package = check = smoke = ""
    for a in platforms:
        for b in computes:
            for c in blas:
                core = sha256(
                    f'{{"inputs":["{source}"],{recipe},"scope":"{a}/{b}-{c}",'
                    f'"settings":{built},"stage":"core",{end}'.encode()
                ).hexdigest()
                count += 1
                for d in pythons:
                    first, second = (core, source) if core < source else (source, core)
                    bindings = sha256(
                        f'{{"inputs":["{first}","{second}"],{recipe},"scope":"{a}/{b}-{c}/{d}",'
                        f'"settings":{{}},"stage":"bindings",{end}'.encode()
                    ).hexdigest()
                    count += 1
                    first, second = (core, bindings) if core < bindings else (bindings, core)
                    for e in packages:
                        package = sha256(
                            f'{{"inputs":["{first}","{second}"],{recipe},'
                            f'"scope":"{a}/{b}-{c}/{d}/{e}",'
                            f'"settings":{packed},"stage":"package",{end}'.encode()
                        ).hexdigest()
                        check = sha256(
                            f'{{"inputs":["{package}"],{recipe},"scope":"{a}/{b}-{c}/{d}/{e}",'
                            f'"settings":{checked},"stage":"check",{end}'.encode()
                        ).hexdigest()
                        inputs = '","'.join(sorted((package, first, second)))
                        smoke = sha256(
                            f'{{"inputs":["{inputs}"],{recipe},"scope":"{a}/{b}-{c}/{d}/{e}",'
                            f'"settings":{tried},"stage":"smoke",{end}'.encode()
                        ).hexdigest()
                        count += 3
    return count, (package, check, smoke)


def check_same_bytes() -> None:
    """Each fingerprint is made from those before it, so the last ones vouch for all stages."""
    plan = make_plan(config(SMALL, rules=False), tables(SMALL))
    planned = tuple(plan.job(number).fingerprint for number in range(len(plan) - 3, len(plan)))
    if bare(SMALL) != (len(plan), planned):
        msg = "the bare loop does not hash what the planner hashes"
        raise ValueError(msg)


def main() -> None:
    check_same_bytes()
    big, facts = config(SIZES, rules=True), tables(SIZES)
    start = process_time()
    jobs = len(make_plan(big, facts)) if sys.argv[1] == "plan" else bare(SIZES)[0]
    seconds = process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"jobs": jobs, "seconds": seconds, "memory": memory}))


if __name__ == "__main__":
    main()
