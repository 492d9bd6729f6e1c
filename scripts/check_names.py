"""Check that a public name has one meaning in the whole tree.

Lists module-level classes and functions, and fails if one is defined in two modules and has no
reason in `REASONS`, or if a reason there is no longer needed: a search for a name should find one
definition. Modules that implement a Protocol (formats, sections, recipes) share its member names;
these are not counted.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("src/torchyard", "farm/src/torchyard_farm")
DATA = ROOT / "src/torchyard/data"  # smoke tests, run by other Pythons, never imported

PROTOCOLS = (
    ("src/torchyard/package/format.py", "PackageFormat", "src/torchyard/package/*/format.py"),
    ("src/torchyard/index/section.py", "ChannelSection", "src/torchyard/index/*/section.py"),
    ("src/torchyard/ci/provider.py", "CiProvider", "src/torchyard/ci/providers/*.py"),
    ("src/torchyard/recipes/recipe.py", "RecipeModule", "src/torchyard/recipes/*.py"),
)
"""Where a Protocol for modules is defined, its name, and the modules that satisfy it."""

MOST = 5
REASONS: Mapping[str, str] = {
    "command": "the name by which the command line finds the command of a module",
}


def public_names(path: Path) -> Iterator[str]:
    """Yield the names of a module's public classes and functions."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                if not name.startswith("_"):
                    yield name
            case _:
                pass


def protocol_members() -> dict[Path, set[str]]:
    """Return the names that each module that implements a Protocol must define."""
    members: dict[Path, set[str]] = defaultdict(set)
    for file, protocol, modules in PROTOCOLS:
        for node in ast.parse((ROOT / file).read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and node.name == protocol:
                asked = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
                for path in ROOT.glob(modules):
                    members[path] |= asked
    return members


def repeated_names() -> dict[str, list[str]]:
    """Return each name that several modules define, with these modules."""
    members = protocol_members()
    modules: dict[str, list[str]] = defaultdict(list)
    for source in SOURCES:
        for path in sorted((ROOT / source).rglob("*.py")):
            if not path.is_relative_to(DATA):
                for name in sorted(set(public_names(path)) - members[path]):
                    modules[name].append(str(path.relative_to(ROOT)))
    return {name: paths for name, paths in sorted(modules.items()) if len(paths) > 1}


def main() -> int:
    repeated = repeated_names()
    for name, paths in repeated.items():
        reason = REASONS.get(name, "NO REASON: rename one of them")
        places = f"{len(paths)} modules" if len(paths) > 4 else ", ".join(paths)  # noqa: PLR2004
        print(f"{name}: {places} ({reason})")
    unexplained = [name for name in repeated if name not in REASONS]
    stale = [name for name in REASONS if name not in repeated]
    for name in stale:
        print(f"{name}: is defined once now; remove it from REASONS in scripts/check_names.py")
    if len(REASONS) > MOST:
        print(f"{len(REASONS)} names have a reason; at most {MOST} may")
    return 1 if unexplained or stale or len(REASONS) > MOST else 0


if __name__ == "__main__":
    sys.exit(main())
