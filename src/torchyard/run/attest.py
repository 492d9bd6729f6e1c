"""Statements about the packages of a job, which this machine signs if it has a key."""

from pathlib import Path

from msgspec.structs import replace

from torchyard.model.recipe import Stage
from torchyard.model.result import Result
from torchyard.package.delivered import STATEMENT, is_package_name
from torchyard.package.statement import sign_statement
from torchyard.store.store import Unusable
from torchyard.store.trees import Writer


def with_statement(result: Result, writer: Writer, folder: Path) -> Result:
    """Return a result with a statement beside each package, stored by way of a folder.

    Steps must not reach the folder. What they left themselves in the place of a statement stays.
    """
    store = writer.store
    if store.signer is None or result.spec.task.stage is not Stage.PACKAGE:
        return result
    unusable: Unusable = {}
    made = store.results([task.fingerprint for task in result.spec.tasks[:-1]], unusable)
    inputs = list(made)  # those that this machine trusts
    confined = not unusable and store.is_confined(result)
    data = sign_statement(result, inputs, store.signer, confined=confined)
    (folder / "statement").write_bytes(data)
    stored = writer.add_file(folder / "statement", STATEMENT)
    there = {file.path for file in result.tree.files}
    names = [f"{path}{STATEMENT}" for path in there if "/" not in path and is_package_name(path)]
    sidecars = (replace(stored, path=name) for name in sorted(names) if name not in there)
    return replace(result, sidecars=tuple(sidecars))
