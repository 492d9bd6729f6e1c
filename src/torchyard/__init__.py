"""Plan, build, verify and publish PyTorch packages, and everything compiled against PyTorch.

The names in `__all__` are the Python API: the use cases that the command line calls, and the
classes that they take, return and raise. They are imported when they are first used, so that
`import torchyard` is cheap.
"""

from typing import TYPE_CHECKING

from torchyard.version import __version__

if TYPE_CHECKING:
    from torchyard.app.check import check_packages
    from torchyard.app.promote import promote_packages
    from torchyard.app.publish import publish_packages
    from torchyard.app.smoke import smoke_packages
    from torchyard.engines.builtin.local import LocalEngine
    from torchyard.engines.engine import Engine
    from torchyard.errors import TorchyardError
    from torchyard.model.build_result import BuildResult
    from torchyard.plan.graph import Plan
    from torchyard.reports.check.document import CheckDocument
    from torchyard.reports.publish.document import PublishDocument
    from torchyard.reports.smoke.document import SmokeDocument
    from torchyard.workspace.build import build_packages
    from torchyard.workspace.build_request import BuildRequest
    from torchyard.workspace.plan import plan_packages

__all__ = [
    "BuildRequest",
    "BuildResult",
    "CheckDocument",
    "Engine",
    "LocalEngine",
    "Plan",
    "PublishDocument",
    "SmokeDocument",
    "TorchyardError",
    "__version__",
    "build_packages",
    "check_packages",
    "plan_packages",
    "promote_packages",
    "publish_packages",
    "smoke_packages",
]

_MODULES = {
    "BuildRequest": "workspace.build_request",
    "BuildResult": "model.build_result",
    "CheckDocument": "reports.check.document",
    "Engine": "engines.engine",
    "LocalEngine": "engines.builtin.local",
    "Plan": "plan.graph",
    "PublishDocument": "reports.publish.document",
    "SmokeDocument": "reports.smoke.document",
    "TorchyardError": "errors",
    "build_packages": "workspace.build",
    "check_packages": "app.check",
    "plan_packages": "workspace.plan",
    "promote_packages": "app.promote",
    "publish_packages": "app.publish",
    "smoke_packages": "app.smoke",
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
