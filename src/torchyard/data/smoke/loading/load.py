# level: import
# about: every library of the wheel loads beside torch, and its modules can be imported
# timeout: 300
import ctypes
import importlib.metadata
import os
import re
import runpy
import sys

import torch  # noqa: F401 - its libraries are those that the others need

MISSING = re.compile(r"(\S+): cannot open shared object file")
drivers = set(os.environ["TORCHYARD_SMOKE_DRIVERS"].split())
files = importlib.metadata.distribution(os.environ["TORCHYARD_SMOKE_NAME"]).files or ()
libraries = [file for file in files if re.search(r"\.so(\.[\d.]+)?$", file.name)]
unloaded = set()
for file in libraries:
    try:
        ctypes.CDLL(str(file.locate()), os.RTLD_NOW)  # as Python loads modules
    except OSError as error:
        missing = MISSING.match(str(error))
        if not missing or missing[1] not in drivers:
            sys.exit(f"{file.name}: {str(error).replace(str(file.locate()), '').lstrip(': ')}")
        unloaded.add(missing[1])
if unloaded:
    print(f"note: not all was loaded: {', '.join(sorted(unloaded))} is a driver, and is not here")
else:
    runpy.run_path(os.path.join(os.path.dirname(__file__), "../modules.py"))
