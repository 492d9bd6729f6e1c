"""Import the modules of a package as its users do: its own first, extension modules after torch.

An additional module, such as a folder of tests, may need what the package does not require:
`lacking` maps its name to what it needs.
"""

import importlib
import importlib.machinery
import importlib.util
import os

names = os.environ["TORCHYARD_SMOKE_MODULES"].split()
own = os.environ["TORCHYARD_SMOKE_OWN"].split()
lacking = {}


def is_compiled(name):
    found = None if "." in name else importlib.util.find_spec(name)
    return ((found and found.origin) or "").endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES))


for name in sorted(names, key=lambda name: (is_compiled(name), name not in own)):
    if is_compiled(name) and importlib.util.find_spec("torch"):
        importlib.import_module("torch")
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if not missing or missing in {module.partition(".")[0] for module in names}:
            raise  # the package itself lacks a file
        if importlib.util.find_spec(missing):
            raise  # it is for another version of what is installed
        if name in own:
            hint = f"`{name}` needs `{missing}`, which the package does not require"
            raise ModuleNotFoundError(f"{error}: {hint}", name=error.name) from error
        lacking[name] = missing
