"""Results of a plan's jobs, in torchyard's layout for publication."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from torchyard.model.conda_output import NONE, CondaOutputs
from torchyard.model.recipe import Stage
from torchyard.package.delivered import delivered_packages
from torchyard.recipes.publishing import CONFINED, OTHERS

_SCOPE = "*/*/*/*"
"""The folders of cells: PLATFORM/COMPUTE-VARIANT/PYTHON/PACKAGE."""


class PlanResults(NamedTuple):
    """A directory with a folder for each result, as `input_path` names it.

    The content of a result does not affect its path: a package job's files are never read as
    reports.
    """

    folder: Path
    label: str
    """The plan's release: `torch-2.14.0`."""
    made: Mapping[str, str] = {}
    """The cells of packages in the store that are not in the directory, by sha256."""
    outputs: CondaOutputs = NONE
    """The file's names and versions of conda packages."""

    def packages(self) -> list[Path]:
        """Return the packages that the plan's package jobs delivered."""
        return [
            path
            for folder in self._folders(Stage.PACKAGE).values()
            for path in delivered_packages(folder)
        ]

    def cell_for(self, path: Path, sha256: str) -> str:
        """Return the cell whose job delivered a file, or "" if none did."""
        folder = self.folder / Stage.PACKAGE
        if path.is_relative_to(folder):
            return f"{self.label}/{path.relative_to(folder).parent.as_posix()}"
        return self.made.get(sha256, "")

    def reports(self, stage: Stage, name: str) -> Iterator[tuple[str, bytes]]:
        """Yield the reports of torchyard's own jobs of a stage, with their cells."""
        for cell, folder in self._folders(stage).items():
            target = folder / name
            if target.is_file() and not target.is_symlink():
                yield cell, target.read_bytes()

    def succeeded(self, stage: Stage) -> set[str]:
        """Return the cells whose jobs of a stage succeeded, even with steps of the file."""
        return {*self._folders(stage), *self._folders(f"{OTHERS}/{stage}")}

    def confined(self) -> set[str]:
        """Return the cells whose packages were made in a sandbox, as recorded by torchyard."""
        file = self.folder / CONFINED
        return set(file.read_text(encoding="utf-8").splitlines()) if file.is_file() else set()

    def _folders(self, target: str) -> dict[str, Path]:
        """Return the folders of a stage by cell."""
        root = self.folder / target
        found = sorted(path for path in root.glob(_SCOPE) if path.is_dir())
        return {f"{self.label}/{path.relative_to(root).as_posix()}": path for path in found}
