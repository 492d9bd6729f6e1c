"""A first `torchyard.toml`: small, commented, and right."""

from collections.abc import Sequence

from torchyard.config.decode import decode
from torchyard.config.document import Document
from torchyard.config.evaluate import evaluate
from torchyard.model.recipe import RECIPES, Dimension
from torchyard.model.tables import TORCH_PREFIX, Tables
from torchyard.model.values import Value


class Answers(Value, kw_only=True):
    """What somebody wants to begin with."""

    recipe: str
    name: str
    version: str
    git: str
    rev: str
    platform: Sequence[str]
    compute: Sequence[str]
    python: Sequence[str]
    package: Sequence[str]
    torch: str


def starter(answers: Answers, tables: Tables) -> str:
    """Write the file, and read it once to be sure that it is valid."""
    text = _TEMPLATE.format(
        recipe=answers.recipe,
        name=answers.name,
        version=answers.version,
        git=answers.git,
        rev=answers.rev,
        dimensions=_dimensions(answers, tables),
        compute=_list(answers.compute),
        couple=_couple(answers, tables),
        python=_list(answers.python),
        package=_list(answers.package),
        release=f'release = "{answers.torch}"\n' if _needs_release(answers, tables) else "",
        pr_python=answers.python[-1],
    )
    document = Document("torchyard.toml", text)
    evaluate(decode(document), document, tables)
    return text


def _list(values: Sequence[str]) -> str:
    return "[" + ", ".join(f'"{value}"' for value in values) + "]"


def _needs_release(answers: Answers, tables: Tables) -> bool:
    own = ".".join(answers.version.split(".")[:2])
    return answers.recipe == "pytorch" and own not in tables.releases


def _dimensions(answers: Answers, tables: Tables) -> str:
    """The platforms and what depends on the recipe, unless a couple gives them."""
    if _couple(answers, tables):
        return ""
    dimension = RECIPES[answers.recipe].variant
    values: tuple[str, ...] = (f"{TORCH_PREFIX}{answers.torch}",)
    if dimension is Dimension.BLAS:
        values = tuple(dict.fromkeys(_blas(answers, tables)))
    return f"platform = {_list(answers.platform)}\n{dimension} = {_list(values)}\n"


def _couple(answers: Answers, tables: Tables) -> str:
    """Several platforms want a BLAS each."""
    blas = _blas(answers, tables)
    if answers.recipe == "extension" or len(set(blas)) == 1:
        return ""
    return (
        "\n# Each platform has its BLAS; the lists are read side by side.\n"
        f"[[matrix.couple]]\nplatform = {_list(answers.platform)}\nblas = {_list(blas)}\n"
    )


def _blas(answers: Answers, tables: Tables) -> Sequence[str]:
    """The usual BLAS of each platform; one that is unknown is complained of later."""
    known = tables.platforms
    return [known[name].blas[0] if name in known else "generic" for name in answers.platform]


_TEMPLATE = """\
# Which binaries of {name} should exist. `torchyard plan` shows what this file means,
# `torchyard explain CELL` why a package is or is not made.

[project]
name = "{name}"
version = "{version}"
recipe = "{recipe}"
{release}
[source]
git = "{git}"
rev = "{rev}"

# Everything that can be combined is built: the product of these lists.
[matrix]
{dimensions}compute = {compute}
python = {python}
package = {package}
{couple}
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
# stage = "bindings"
# compute = "cu*"
# env = {{ MAX_JOBS = "8" }}

# What the jobs want from a machine; plans estimate time and space from it.
[requirements.bindings]
memory = "8 GB"
disk = "20 GB"
"""
