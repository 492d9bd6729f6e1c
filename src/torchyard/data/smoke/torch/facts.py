# level: import
# about: version, commit, compute platform and C++ ABI are what the package's name promises
import os
import re

import torch

expected = os.environ["TORCHYARD_SMOKE_VERSION"]
if os.environ["TORCHYARD_SMOKE_KIND"] == "wheel":
    assert torch.__version__ == expected, f"it is {torch.__version__}, not {expected}"
commit = torch.version.git_version
ordered = os.environ["TORCHYARD_SMOKE_COMMIT"]
is_known = re.fullmatch("[0-9a-f]{40}", commit) or (ordered, commit) == ("none", "Unknown")
assert is_known, f"it was made from no commit: {commit}"
assert ordered in ("", "none", commit), f"it was made from {commit}, and not from {ordered}"

compute = os.environ["TORCHYARD_SMOKE_COMPUTE"]
kit, _, wanted = os.environ["TORCHYARD_SMOKE_TOOLKIT"].partition(" ")
for name in os.environ["TORCHYARD_SMOKE_TOOLKITS"].split():
    made = getattr(torch.version, name, None)
    why = f"it is for {name.upper()} {made}, and labelled {compute}"
    if name == kit:
        assert f"{made}.".startswith(f"{wanted}."), why
    elif compute and not kit:
        assert made is None, why

assert torch.compiled_with_cxx11_abi(), "it was compiled with the C++ ABI from before C++11"
config = torch.__config__.show()
assert "PyTorch built with" in config, config
assert torch.backends.openmp.is_available(), "it was compiled without OpenMP"
assert (
    torch.backends.mkl.is_available()
    or torch.backends.mkldnn.is_available()
    or ("BLAS_INFO" in config)
), "it was compiled without any BLAS"
