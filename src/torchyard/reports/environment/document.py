"""What `torchyard env --shell json` prints."""

from typing import Literal

from torchyard.model.values import Reported
from torchyard.toolchain.activation import CellEnvironment, EnvironmentPart, Shell
from torchyard.toolchain.variables import LISTS


class EnvironmentDocument(Reported, kw_only=True):
    """`torchyard env --shell json`: variables to set, and folders to put before those of others.

    `scripts` are the files to source, by shell.
    """

    version: Literal[1] = 1
    cell: str
    folder: str
    parts: tuple[EnvironmentPart, ...]
    set: dict[str, str]
    prepend: dict[str, list[str]]
    scripts: dict[str, str]


def environment_document(made: CellEnvironment) -> EnvironmentDocument:
    variables = sorted(made.variables.items())
    return EnvironmentDocument(
        cell=made.cell,
        folder=made.folder,
        parts=made.parts,
        set={name: value for name, value in variables if name not in LISTS},
        prepend={name: value.split(":") for name, value in variables if name in LISTS},
        scripts={shell.value: str(made.script(shell)) for shell in Shell},
    )
