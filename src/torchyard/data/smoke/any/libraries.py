# level: import
# about: libraries come from the environment, or are such as every system has
import fnmatch
import importlib
import os
import pathlib
import sys


def loaded():
    with open("/proc/self/maps") as maps:
        paths = {line.split(maxsplit=5)[5].strip() for line in maps if line.count("/")}
    return {path for path in paths if ".so" in os.path.basename(path)}


# What Python's own modules need is no matter of the package.
(own,) = [path for path in sys.path if path.endswith("lib-dynload")]
for module in pathlib.Path(own).glob("*.so"):
    try:
        importlib.import_module(module.name.partition(".")[0])
    except ImportError:
        pass
before = loaded()
for name in os.environ["TORCHYARD_SMOKE_MODULES"].split():
    importlib.import_module(name)

roots = [os.path.realpath(path) for path in (*sys.path, sys.prefix, sys.base_prefix) if path]
allowed = []
for name in os.environ["TORCHYARD_SMOKE_SYSTEM"].split():
    allowed += [name, f"{name}.*", f"{name.partition('.so')[0]}-[0-9]*.so"]


def is_fine(path):
    inside = any(path.startswith(root + os.sep) for root in roots)
    return inside or any(fnmatch.fnmatch(os.path.basename(path), name) for name in allowed)


wrong = [path for path in sorted(loaded() - before) if not is_fine(path)]
if wrong:
    sys.exit(f"neither in this environment nor in every system: {', '.join(wrong)}")
