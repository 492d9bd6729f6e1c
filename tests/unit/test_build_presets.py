"""How a torch release is built: found by its version, and set otherwise by the file."""

import tomllib
from pathlib import Path

import pytest
from tests.support.helpers import SMALL, Command, config_of, plan_of

from torchyard.config.tables import load_tables
from torchyard.errors import ConfigError
from torchyard.model.recipe import Stage
from torchyard.plan.explain import ingredients
from torchyard.plan.select import EVERYTHING

FULL = f'{SMALL}\n[toolchain]\n\n[build]\ntree = "full"\n'
CORE = "linux-x86_64/cpu-mkl"


def shown(text: str, *changes: str) -> dict[str, tuple[str, str]]:
    """Return what `explain` shows of a core: values and origins, by name."""
    plan = plan_of(text, EVERYTHING, *changes)
    found = ingredients(plan, plan.find(Stage.CORE, CORE))
    return {item.name: (item.value, str(item.origin)) for item in found}


@pytest.mark.parametrize(
    ("version", "backend", "row"),
    [
        ("2.2.2", "setup.py", "2.0"),
        ("2.6.0", "setup.py", "2.3"),
        ("2.13.0", "setup.py", "2.3"),
        ("2.14.1", "scikit-build-core", "2.14"),
        ("2.15.0.dev20261115", "scikit-build-core", "2.14"),
        ("2.30.0", "scikit-build-core", "2.14"),
    ],
)
def test_a_tree_is_built_as_its_release_is(version: str, backend: str, row: str) -> None:
    build = config_of(FULL, f"project.version={version}", "project.release=none").build
    assert (build.backend, build.preset) == (backend, row)
    assert build.requires == load_tables().builds[row].requires
    seen = shown(FULL, f"project.version={version}", "project.release=2.14")
    assert seen["backend"] == ("scikit-build-core", "data/builds.toml: 2.14")


def test_the_file_comes_before_the_release() -> None:
    text = f'{FULL}backend = "setup.py"\nrequires = []\n'
    seen = shown(text)
    line = text[: text.index("backend =")].count("\n") + 1
    assert seen["backend"] == ("setup.py", f"torchyard.toml:{line}")
    assert seen["requires"] == ("", f"torchyard.toml:{line + 1}")


def test_a_row_of_the_file_is_found_by_its_release() -> None:
    row = '[tables.builds."2.15"]\nbackend = "setup.py"\nrequires = ["cmake==4.4.4"]\n'
    text = FULL + row
    line = text[: text.index("requires = [")].count("\n") + 1
    seen = shown(text, "project.version=2.15.0", 'project.release="none"', 'matrix.compute=["cpu"]')
    assert seen["requires"] == ("cmake==4.4.4", f"torchyard.toml:{line}")
    assert shown(text)["backend"] == ("scikit-build-core", "data/builds.toml: 2.14")


def test_requirements_of_a_row_are_pinned() -> None:
    row = '[tables.builds."2.15"]\nbackend = "setup.py"\nrequires = ["cmake>=4"]\n'
    with pytest.raises(ConfigError, match="require `cmake>=4`, which is not pinned"):
        config_of(FULL + row)


def test_without_a_tree_nothing_is_taken_from_the_release() -> None:
    plain = FULL.replace('tree = "full"\n', "")
    build = config_of(plain).build
    assert (build.backend, build.requires, build.preset) == ("setup.py", (), None)
    assert shown(plain)["backend"] == ("setup.py", "default")
    oldest = config_of(FULL, "project.version=1.13.1", "project.release=none").build
    assert (oldest.backend, oldest.requires, oldest.preset) == ("setup.py", (), None)


@pytest.mark.parametrize(
    ("version", "release", "backend"),
    [
        ("2.5.1", None, "setup.py"),
        ("1.13.1", "none", "setup.py"),
        ("2.13.0", None, "setup.py"),
        ("2.14.1", None, "scikit-build-core"),
    ],
)
def test_init_proposes_what_the_release_needs(
    torchyard: Command, tmp_path: Path, version: str, release: str | None, backend: str
) -> None:
    file = tmp_path / "torchyard.toml"
    done = torchyard("init", "-f", file, "--version", version)
    assert done.code == 0
    written = tomllib.loads(file.read_text(encoding="utf-8"))
    assert written["project"].get("release") == release
    assert written["build"]["backend"] == backend
    tagged = written["build"]["requires"]
    assert ("scikit-build-core==1.1.1" in tagged) == (backend == "scikit-build-core")
