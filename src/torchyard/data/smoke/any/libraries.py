# level: import
# about: libraries come from the environment, or are such as every system has
import fnmatch
import importlib.util
import os
import pathlib
import runpy
import subprocess  # noqa: TID251 - tests have nothing of torchyard
import sys


def loaded():
    with open("/proc/self/maps") as maps:
        paths = {line.split(maxsplit=5)[5].strip() for line in maps if line.count("/")}
    return {path for path in paths if ".so" in os.path.basename(path)}


# The package is not responsible for what Python's own modules need.
(own,) = [path for path in sys.path if path.endswith("lib-dynload")]
for module in pathlib.Path(own).glob("*.so"):
    try:
        importlib.import_module(module.name.partition(".")[0])
    except ImportError:
        pass
# Nor is an extension responsible for what torch loads.
modules = os.environ["TORCHYARD_SMOKE_MODULES"].split()
if "torch" not in modules and importlib.util.find_spec("torch"):
    importlib.import_module("torch")
before = loaded()
runpy.run_path(os.path.join(os.path.dirname(__file__), "../modules.py"))

roots = [os.path.realpath(path) for path in (*sys.path, sys.prefix, sys.base_prefix) if path]
allowed = []
for name in os.environ["TORCHYARD_SMOKE_SYSTEM"].split():
    allowed += [name, f"{name}.*", f"{name.partition('.so')[0]}-[0-9]*.so"]


def is_inside(path):
    return any(path.startswith(root + os.sep) for root in roots)


def is_system(path):
    """Accept the target of a link, too: a driver's libcuda.so.1 leads to libcuda.so.550.163.01."""
    name, folder = os.path.basename(path), os.path.dirname(path)
    return any(
        fnmatch.fnmatch(name, one) or os.path.realpath(os.path.join(folder, one)) == path
        for one in allowed
    )


outside = {path for path in loaded() - before if not is_inside(path)}
system = {path for path in outside if is_system(path)}
if outside - system:
    # Nor is the package responsible for what the system's libraries need, such as a driver, or
    # for what modules of other packages load.
    own = {name.partition(".")[0] for name in modules}
    others = [name for name in sys.modules if name.partition(".")[0] not in own]
    code = """
import ctypes, importlib, sys
system, others = (words.split() for words in sys.argv[1:])
for load, names in (ctypes.CDLL, system), (importlib.import_module, others):
    for name in names:
        try:
            load(name)
        except Exception:
            pass
print(*open("/proc/self/maps"))
"""
    argv = [sys.executable, "-c", code, " ".join(system), " ".join(others)]
    brought = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603
    outside -= set(brought.stdout.split())
wrong = sorted(outside - system)
if wrong:
    sys.exit(f"neither in this environment nor in every system: {', '.join(wrong)}")
