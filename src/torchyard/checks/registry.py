"""All rules, from `checks/rules` and from plug-ins.

Importing a module registers the rules in it. An entry point in the group `torchyard.rules` names a
module of another distribution. Compute platforms of plug-ins are loaded with them, as they define
which libraries are drivers: findings must not depend on the packages checked before.
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
"""Return the plug-ins that affect findings, each with its version."""

__all__ = ["INDEX_RULES", "PACKAGE_RULES", "PLUG_INS", "RULES", "SHIPPED"]
