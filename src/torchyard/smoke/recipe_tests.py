"""The tests in a conda package, as its recipe states them: imports and scripts."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from torchyard.host.entry_points import require_module
from torchyard.smoke.suite import Level, Test

TIMEOUT = 600
"""The time limit of a script, in seconds."""


class _Script(msgspec.Struct):
    content: str | list[str] = ""
    interpreter: str | None = None


class _Needs(msgspec.Struct):
    run: list[str] = []


class RecipeTest(msgspec.Struct):
    """A test, as rattler-build returns it; one of package contents has no fields of these."""

    script: _Script | list[str] | str = ""
    imports: list[str] = []
    requirements: _Needs | None = None

    @property
    def required(self) -> list[str]:
        """What must be installed with the package."""
        return self.requirements.run if self.requirements else []


def read_recipe_tests(package: Path) -> list[RecipeTest]:
    """Return the tests in a package file; none if it is not a file."""
    if not package.is_file():
        return []
    require_module("rattler_build", "tests of conda packages")
    from rattler_build import Package  # noqa: PLC0415 - an optional extra

    found = [test.to_dict() for test in Package.from_file(package).tests]
    return msgspec.convert(found, list[RecipeTest])


def write_recipe_tests(tests: Sequence[RecipeTest], folder: Path) -> tuple[Test, ...]:
    """Write tests into a folder, as files that can be run."""
    folder.mkdir(parents=True, exist_ok=True)
    pairs = enumerate(tests)
    return tuple(made for number, test in pairs for made in _write(test, number, folder))


def _write(test: RecipeTest, number: int, folder: Path) -> Iterator[Test]:
    script = test.script if isinstance(test.script, _Script) else _Script(test.script)
    content = script.content
    lines = content.splitlines() if isinstance(content, str) else content
    if test.imports:
        name, lines = f"imports-{number}.py", [f"import {module}" for module in test.imports]
    elif lines:
        name = f"script-{number}{'.py' if script.interpreter == 'python' else '.sh'}"
    else:
        return
    path = folder / name
    path.write_text("\n".join((*lines, "")), encoding="utf-8")
    yield Test(
        name=f"recipe/{name}",
        path=str(path),
        language="python" if path.suffix == ".py" else "shell",
        level=Level.IMPORT if test.imports else Level.OPS,
        about=f"a test of the package's recipe: {lines[0]}",
        timeout=TIMEOUT,
    )
