# level: import
# about: version, commit, compute platform, C++ ABI and libraries are what the package promises
import os
import re

import torch

expected = os.environ["TORCHYARD_SMOKE_VERSION"]
if os.environ["TORCHYARD_SMOKE_KIND"] == "wheel":
    assert torch.__version__ == expected, f"it is {torch.__version__}, not {expected}"
commit = torch.version.git_version
expected = os.environ["TORCHYARD_SMOKE_COMMIT"]
is_known = re.fullmatch("[0-9a-f]{40}", commit) or (expected, commit) == ("none", "Unknown")
assert is_known, f"it was made from no commit: {commit}"
assert expected in ("", "none", commit), f"it was made from {commit}, and not from {expected}"

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
settings = dict(re.findall(r"\b([A-Z]\w+)=([^,\n]*)", config))
settings["USE_MAGMA"] = str(torch.cuda.has_magma)
for name in (os.environ.get("TORCHYARD_SMOKE_SWITCHES") or "USE_OPENMP").split():
    made = settings.get(name, "missing")
    assert made.lower() in ("1", "on", "true"), f"{name} is {made}, and promised:\n{config}"
blas, made = os.environ.get("TORCHYARD_SMOKE_BLAS") or ".+", settings.get("BLAS_INFO", "")
assert re.fullmatch(blas, made), f"its BLAS is {made or 'none'}, and not {blas}:\n{config}"
if codes := set(os.environ.get("TORCHYARD_SMOKE_CODES", "").split()):
    missing = codes - set(torch._C._cuda_getArchFlags().split())  # noqa: SLF001 - no GPU needed
    assert not missing, f"it has no code for {' '.join(sorted(missing))}"
