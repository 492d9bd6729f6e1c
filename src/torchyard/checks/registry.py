"""All rules. Importing a module of `checks/rules` registers the rules in it."""

from importlib import import_module
from pkgutil import iter_modules

from torchyard.checks import rules
from torchyard.checks.rule import RULES

for _module in sorted(module.name for module in iter_modules(rules.__path__)):
    import_module(f"{rules.__name__}.{_module}")

__all__ = ["RULES"]
