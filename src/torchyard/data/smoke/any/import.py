# level: import
# about: all modules at the top level can be imported
import importlib
import os

names = os.environ["TORCHYARD_SMOKE_MODULES"].split()
assert names, "the package has no modules"
for name in names:
    importlib.import_module(name)
