"""The version of a tree of PyTorch, read before anything is compiled."""

from pathlib import Path

from torchyard.errors import BuildError
from torchyard.host.process import capture

_TOOL = "tools/generate_torch_version.py"
_ASK = "from tools.generate_torch_version import get_torch_version; print(get_torch_version())"


def check_tree_version(tree: Path, wanted: str, label: str) -> None:
    """Fail if packages of the tree would have another version; ignore trees of other projects."""
    if not (tree / _TOOL).is_file():
        return
    found = capture(["python", "-c", _ASK], cwd=tree).strip()
    if found != wanted:
        msg = f"the tree of {label} has version {found}, but the packages have {wanted}"
        hint = "correct `version` of [project], or the tree, by a line in `prepare` of [build]"
        raise BuildError(msg, hint=hint)
