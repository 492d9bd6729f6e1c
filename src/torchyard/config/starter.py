"""Writes a first `torchyard.toml`: small, commented and valid."""

from collections.abc import Sequence

import msgspec

from torchyard.config.recipes import known_recipes
from torchyard.model.config import own_release
from torchyard.model.recipe import Dimension
from torchyard.model.tables import TORCH_PREFIX, Tables
from torchyard.model.values import Value


class Answers(Value, kw_only=True):
    """The choices for a new file. The source is a repository, a directory or an sdist.

    `notes` say where some of them come from.
    """

    recipe: str
    name: str
    version: str
    git: str
    rev: str
    path: str
    sdist: str = ""
    sha256: str = ""
    notes: tuple[str, ...] = ()
    platform: tuple[str, ...]
    compute: tuple[str, ...]
    python: tuple[str, ...]
    package: tuple[str, ...]
    torch: tuple[str, ...]


def starter(answers: Answers, tables: Tables) -> str:
    """Return the text of the file."""
    recipe = known_recipes()[answers.recipe]
    source = f"git = {_quoted(answers.git)}\nrev = {_quoted(answers.rev)}"
    if answers.path:
        source = f"path = {_quoted(answers.path)}"
    if answers.sdist:
        source = f"sdist = {_quoted(answers.sdist)}\nsha256 = {_quoted(answers.sha256)}"
    release = f"release = {_quoted(answers.torch[0])}\n"
    return _TEMPLATE.format(
        recipe=answers.recipe,
        title=answers.name,
        notes="".join(f"# {_on_one_line(note)}\n" for note in answers.notes),
        name=_quoted(answers.name),
        version=_quoted(answers.version),
        source=source,
        dimensions=_dimensions(answers, tables),
        compute=_list(answers.compute),
        couple=_couple(answers, tables),
        python=_list(answers.python),
        package=_list(answers.package),
        release=release if _needs_release(answers) else "",
        pr_python=answers.python[-1],
        compiling=recipe.compiling,
        toolchain=_toolchain(answers, tables) if recipe.provisioned else "",
        steps="" if recipe.provisioned else _STEPS,
    )


def _toolchain(answers: Answers, tables: Tables) -> str:
    """Return the tables that the steps of a provisioned recipe need, as torch's releases do."""
    if known_recipes()[answers.recipe].is_extension:
        return _EXTENSION
    release = tables.preset_for(own_release(answers.version)) or next(iter(tables.builds))
    row = tables.builds[release]
    requires = "".join(f"  {_quoted(pin)},\n" for pin in row.requires)
    return _TOOLCHAIN.format(backend=_quoted(row.backend), requires=requires)


def _on_one_line(note: str) -> str:
    """Return a note as one comment, whatever is in the names of files that it cites."""
    return "".join(char if char.isprintable() else "?" for char in note)


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()


def _list(values: Sequence[str]) -> str:
    return f"[{', '.join(map(_quoted, values))}]"


def _needs_release(answers: Answers) -> bool:
    """Return whether the torch release for library pins does not follow from the version."""
    is_torch = not known_recipes()[answers.recipe].is_extension
    return is_torch and own_release(answers.version) != answers.torch[0]


def _dimensions(answers: Answers, tables: Tables) -> str:
    """Return the dimensions that no couple lists."""
    if _couple(answers, tables):
        return ""
    dimension = known_recipes()[answers.recipe].variant
    values = tuple(f"{TORCH_PREFIX}{release}" for release in answers.torch)
    if dimension is Dimension.BLAS:
        values = tuple(dict.fromkeys(_blas(answers, tables)))
    return f"platform = {_list(answers.platform)}\n{dimension} = {_list(values)}\n"


def _couple(answers: Answers, tables: Tables) -> str:
    """Return a couple of platforms and BLAS, or nothing if all platforms use the same BLAS."""
    blas = _blas(answers, tables)
    if known_recipes()[answers.recipe].variant is not Dimension.BLAS or len(set(blas)) == 1:
        return ""
    return (
        "\n# Each platform has its BLAS; the lists are read side by side.\n"
        f"[[matrix.couple]]\nplatform = {_list(answers.platform)}\nblas = {_list(blas)}\n"
    )


def _blas(answers: Answers, tables: Tables) -> Sequence[str]:
    """Return the usual BLAS of each platform."""
    return [tables.platforms[name].blas[0] for name in answers.platform]


_TOOLCHAIN = """
# What compiles; `torchyard toolchain` shows what this machine has.
[toolchain]
compiler = "gcc"

# How the project builds itself: "setup.py", or "scikit-build-core" as PyTorch since 2.14. Its build
# requirements are pinned, with all that they need.
[build]
backend = {backend}
requires = [
{requires}]
"""

_EXTENSION = """
# What compiles; `torchyard toolchain` shows what this machine has. The torch of each cell and the
# project's build requirements are in torchyard.lock, which `torchyard lock` writes.
[toolchain]
compiler = "gcc"

# What the project's build imports, but its pyproject.toml does not name.
# [build]
# requires = ["numpy"]
"""

_STEPS = """
# This recipe plans, and has no commands of its own. These make the wheel of a project
# with a pyproject.toml, by the Python of each cell; correct them for yours.
[[steps.bindings]]
name = "compile"
run = '''
version={python}
python3.${version#cp3} -m venv env
cp -r {source} source
env/bin/pip wheel --no-deps --wheel-dir {out} ./source
'''
outputs = ["*.whl"]
network = true                 # pip downloads the build requirements

[[steps.package]]
run = "cp {bindings}/*.whl {out}"
"""

_TEMPLATE = """\
# Which binaries of {title} should exist. `torchyard plan` shows what this file means,
# `torchyard explain CELL` why a package is or is not made.
{notes}
[project]
name = {name}
version = {version}
recipe = "{recipe}"
{release}
[source]
{source}

# Everything that can be combined is built: the product of these lists.
[matrix]
{dimensions}compute = {compute}
python = {python}
package = {package}
{couple}{toolchain}
# Leave out what you do not want; the reason is shown in every plan.
# [[matrix.exclude]]
# python = "cp310"
# compute = "cu*"
# reason = "nobody uses CUDA with Python 3.10 any more"

# A named part: `torchyard plan --subset pr`.
[subset.pr]
python = "{pr_python}"

# Settings for some cells.
# [[override]]
# stage = "{compiling}"
# compute = "cu*"
# env = {{ USE_CUDNN = "1" }}

# What the jobs want from a machine; plans estimate time and space from it.
[requirements.{compiling}]
memory = "16 GB"
disk = "30 GB"
time = "60 min"
{steps}"""
