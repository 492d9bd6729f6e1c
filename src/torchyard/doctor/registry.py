"""All checks of the machine except those of compute platforms; importing registers them."""

from importlib import import_module
from pkgutil import iter_modules

from torchyard.doctor import checks
from torchyard.doctor.check import MACHINE_CHECKS

for _module in sorted(module.name for module in iter_modules(checks.__path__)):
    import_module(f"{checks.__name__}.{_module}")

__all__ = ["MACHINE_CHECKS"]
