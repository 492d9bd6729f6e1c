"""All rules: those of `checks/rules`, and those of plug-ins.

Importing a module registers the rules in it. An entry point in the group `torchyard.rules` names a
module of another distribution.
"""

from importlib import import_module
from pkgutil import iter_modules

from torchyard.checks import rules
from torchyard.checks.rule import INDEX_RULES, PACKAGE_RULES, RULES
from torchyard.host.entry_points import entry_points_in, load

for _module in sorted(module.name for module in iter_modules(rules.__path__)):
    import_module(f"{rules.__name__}.{_module}")

SHIPPED = frozenset(RULES)
"""Rules of torchyard itself."""

for _name, _point in entry_points_in("torchyard.rules").items():
    load(_point, f"rules of {_name}")

__all__ = ["INDEX_RULES", "PACKAGE_RULES", "RULES", "SHIPPED"]
