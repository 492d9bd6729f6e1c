"""All rules: those of `checks/rules`, and those of plug-ins.

Importing a module registers the rules in it. An entry point in the group `torchyard.rules` names a
module of another distribution. Compute platforms of plug-ins are loaded with them, as rules ask
these which libraries are drivers: what is found must not depend on the packages checked before.
"""

from importlib import import_module
from pkgutil import iter_modules

from torchyard.checks import rules
from torchyard.checks.rule import INDEX_RULES, PACKAGE_RULES, RULES
from torchyard.compute import registry as computes
from torchyard.host.entry_points import entry_points_in, load, versions_in

_GROUP = "torchyard.rules"

for _module in sorted(module.name for module in iter_modules(rules.__path__)):
    import_module(f"{rules.__name__}.{_module}")

SHIPPED = frozenset(RULES)
"""Rules of torchyard itself."""

for _name, _point in entry_points_in(_GROUP).items():
    load(_point, f"rules of {_name}")
computes.compute_platforms(plug_ins=True)

PLUG_INS = tuple(versions_in(_GROUP, computes.GROUP))
"""The plug-ins that change what is found, each with its version."""

__all__ = ["INDEX_RULES", "PACKAGE_RULES", "PLUG_INS", "RULES", "SHIPPED"]
