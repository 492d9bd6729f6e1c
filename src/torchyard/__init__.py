"""Plan, build, verify and publish PyTorch packages, and everything compiled against PyTorch.

The names in `__all__` are the Python API: the use cases that the command line calls, and the
classes that they take, return and raise. They are imported when they are first used, so that
`import torchyard` is cheap.
"""

from typing import TYPE_CHECKING

from torchyard.version import __version__

if TYPE_CHECKING:
    from torchyard.engines.builtin.local import LocalEngine
    from torchyard.engines.engine import Engine
    from torchyard.errors import TorchyardError
    from torchyard.features.channel.use_case import pin_files, prune_files, roll_back, yank_files
    from torchyard.features.check.report import CheckReport
    from torchyard.features.check.use_case import check_packages
    from torchyard.features.index.use_case import mend_pages
    from torchyard.features.patch.use_case import patch_records
    from torchyard.features.publish.report import PublishReport
    from torchyard.features.publish.use_case import promote_packages, publish_packages
    from torchyard.features.smoke.report import SmokeReport
    from torchyard.features.smoke.use_case import smoke_packages
    from torchyard.model.build_result import BuildResult
    from torchyard.plan.graph import Plan
    from torchyard.workspace.build import build_packages
    from torchyard.workspace.build_request import BuildRequest
    from torchyard.workspace.plan import plan_packages

__all__ = [
    "BuildRequest",
    "BuildResult",
    "CheckReport",
    "Engine",
    "LocalEngine",
    "Plan",
    "PublishReport",
    "SmokeReport",
    "TorchyardError",
    "__version__",
    "build_packages",
    "check_packages",
    "mend_pages",
    "patch_records",
    "pin_files",
    "plan_packages",
    "promote_packages",
    "prune_files",
    "publish_packages",
    "roll_back",
    "smoke_packages",
    "yank_files",
]

_MODULES = {
    "BuildRequest": "workspace.build_request",
    "BuildResult": "model.build_result",
    "CheckReport": "features.check.report",
    "Engine": "engines.engine",
    "LocalEngine": "engines.builtin.local",
    "Plan": "plan.graph",
    "PublishReport": "features.publish.report",
    "SmokeReport": "features.smoke.report",
    "TorchyardError": "errors",
    "build_packages": "workspace.build",
    "check_packages": "features.check.use_case",
    "mend_pages": "features.index.use_case",
    "patch_records": "features.patch.use_case",
    "pin_files": "features.channel.use_case",
    "plan_packages": "workspace.plan",
    "promote_packages": "features.publish.use_case",
    "prune_files": "features.channel.use_case",
    "publish_packages": "features.publish.use_case",
    "roll_back": "features.channel.use_case",
    "smoke_packages": "features.smoke.use_case",
    "yank_files": "features.channel.use_case",
}


def __getattr__(name: str) -> object:
    """Import a name of the API when it is first used."""
    if name not in _MODULES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from importlib import import_module  # noqa: PLC0415 - only the API needs it

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
