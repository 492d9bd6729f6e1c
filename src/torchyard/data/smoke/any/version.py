# level: import
# about: the version is the same in the file's name, the metadata and, but for a label, the module
import importlib
import importlib.metadata
import importlib.util
import os
import re

name = os.environ["TORCHYARD_SMOKE_NAME"]
expected = os.environ["TORCHYARD_SMOKE_VERSION"]
if os.environ["TORCHYARD_SMOKE_KIND"] == "wheel":
    installed = importlib.metadata.version(name)
    assert installed == expected, f"the metadata has {installed}, not {expected}"
for module in os.environ["TORCHYARD_SMOKE_MODULES"].split():
    if module == re.sub(r"[-_.]+", "_", name).lower():
        own = str(getattr(importlib.import_module(module), "__version__", expected))
        # Either may lack the label: PyPI's wheels have none, and extensions get theirs when packed.
        same = expected in (own, own.partition("+")[0]) or own == expected.partition("+")[0]
        difference = f"{module}.__version__ is {own}, not {expected}"
        # An extension's module may differ: signatory 1.2.6.1.9.0 says 1.2.6.
        assert same or (module != "torch" and importlib.util.find_spec("torch")), difference
        if not same:
            print(f"note: {difference}")
