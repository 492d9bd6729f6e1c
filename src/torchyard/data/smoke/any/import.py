# level: import
# about: all modules at the top level can be imported
import os
import runpy

assert os.environ["TORCHYARD_SMOKE_MODULES"], "the package has no modules"
found = runpy.run_path(os.path.join(os.path.dirname(__file__), "../modules.py"))
if found["lacking"]:
    lacking = (f"{name}, which needs {missing}" for name, missing in found["lacking"].items())
    print(f"note: not imported, as the package does not require all of it: {'; '.join(lacking)}")
