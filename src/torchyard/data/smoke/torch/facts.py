# level: import
# about: version, commit, compute platform and C++ ABI are what the package's name promises
import os
import re

import torch

expected = os.environ["TORCHYARD_SMOKE_VERSION"]
if os.environ["TORCHYARD_SMOKE_KIND"] == "wheel":
    assert torch.__version__ == expected, f"it is {torch.__version__}, not {expected}"
commit = torch.version.git_version
assert re.fullmatch("[0-9a-f]{40}", commit), f"it was made from no commit: {commit}"
ordered = os.environ["TORCHYARD_SMOKE_COMMIT"]
assert ordered in ("", commit), f"it was made from {commit}, and not from {ordered}"

compute = os.environ["TORCHYARD_SMOKE_COMPUTE"]
cuda, hip = torch.version.cuda, torch.version.hip
if compute.startswith("cu"):
    made = (cuda or "").replace(".", "")
    assert made.startswith(compute[2:]), f"it is for CUDA {cuda}, and labelled {compute}"
elif compute.startswith("rocm"):
    assert (hip or "").startswith(compute[4:]), f"it is for HIP {hip}, and labelled {compute}"
elif compute:
    assert cuda is None and hip is None, f"it is for CUDA {cuda} or HIP {hip}, not {compute}"

assert torch.compiled_with_cxx11_abi(), "it was compiled with the C++ ABI from before C++11"
config = torch.__config__.show()
assert "PyTorch built with" in config, config
assert torch.backends.openmp.is_available(), "it was compiled without OpenMP"
assert (
    torch.backends.mkl.is_available()
    or torch.backends.mkldnn.is_available()
    or ("BLAS_INFO" in config)
), "it was compiled without any BLAS"
