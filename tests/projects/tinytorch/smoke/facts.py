# level: import
# about: version, commit, compute platform and libraries are what the package promises
import os
import re

import tinytorch as t

expected = os.environ["TORCHYARD_SMOKE_VERSION"]
assert t.__version__.partition("+")[0] == expected.partition("+")[0], t.__version__
commit = t.version.git_version
assert re.fullmatch("[0-9a-f]{40}|Unknown", commit), commit
assert os.environ["TORCHYARD_SMOKE_COMMIT"] in ("", commit), commit
compute = os.environ["TORCHYARD_SMOKE_COMPUTE"]
if compute == "cpu":
    assert t.version.cuda is None, t.version.cuda
    assert t.version.hip is None, t.version.hip
elif compute.startswith("cu"):
    assert (t.version.cuda or "").replace(".", "") == compute[2:], t.version.cuda
settings = dict(re.findall(r"\b([A-Z]\w+)=(\w*)", t._C._show_config()))
blas = os.environ.get("TORCHYARD_SMOKE_BLAS") or ".*"
assert re.fullmatch(blas, settings["BLAS_INFO"]), settings
assert settings["USE_OPENMP"] == "ON", settings
