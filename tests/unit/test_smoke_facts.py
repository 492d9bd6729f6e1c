"""The smoke test that compares torch's configuration with what its package promises."""

import runpy
import sys
from collections.abc import Mapping
from types import SimpleNamespace

import pytest
from tests.support.helpers import ROOT

PROGRAM = ROOT / "src/torchyard/data/smoke/torch/facts.py"
CONFIG = """\
PyTorch built with:
  - GCC 13.3
  - Build settings: BLAS_INFO=mkl, BUILD_TYPE=Release, CXX_FLAGS= -O2 -DUSE_KINETO, \
LAPACK_INFO=mkl, USE_CUDA=ON, USE_CUDNN=ON, USE_MKL=ON, USE_NCCL=1, USE_OPENMP=ON, USE_ROCM=OFF,
"""
"""As torch 2.13 shows it, without settings that are not compared."""
PROMISED = {
    "KIND": "wheel",
    "VERSION": "2.13.0+cu130",
    "COMMIT": "",
    "COMPUTE": "cu130",
    "TOOLKIT": "cuda 13.0",
    "TOOLKITS": "cuda hip xpu",
    "BLAS": "mkl.*",
    "CODES": "sm_80 sm_90 compute_90",
    "SWITCHES": "USE_OPENMP USE_CUDNN USE_NCCL USE_MAGMA",
}


def look(
    monkeypatch: pytest.MonkeyPatch,
    config: str = CONFIG,
    changes: Mapping[str, str] = {},
    *,
    magma: bool = True,
) -> None:
    """Run the test in a process in which torch is a stand-in: a real one for CUDA takes 3 GB."""
    torch = SimpleNamespace(
        __version__="2.13.0+cu130",
        __config__=SimpleNamespace(show=lambda: config),
        _C=SimpleNamespace(_cuda_getArchFlags=lambda: "sm_80 sm_90 compute_90"),
        compiled_with_cxx11_abi=lambda: True,
        cuda=SimpleNamespace(has_magma=magma),
        version=SimpleNamespace(git_version="0" * 40, cuda="13.0", hip=None),
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    for name, value in {**PROMISED, **changes}.items():
        monkeypatch.setenv(f"TORCHYARD_SMOKE_{name}", value)
    runpy.run_path(str(PROGRAM))


def test_a_torch_that_is_what_it_promises(monkeypatch: pytest.MonkeyPatch) -> None:
    look(monkeypatch)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("USE_CUDNN=ON", "USE_CUDNN=OFF", "USE_CUDNN is OFF, and promised"),
        ("USE_NCCL=1", "USE_NCCL=0", "USE_NCCL is 0, and promised"),
        ("USE_OPENMP=ON, ", "", "USE_OPENMP is missing, and promised"),
        ("BLAS_INFO=mkl", "BLAS_INFO=open", r"its BLAS is open, and not mkl\.\*"),
        ("BLAS_INFO=mkl", "BLAS_INFO=", r"its BLAS is none, and not mkl\.\*"),
    ],
)
def test_settings_that_differ_are_told(
    monkeypatch: pytest.MonkeyPatch, old: str, new: str, why: str
) -> None:
    with pytest.raises(AssertionError, match=why):
        look(monkeypatch, CONFIG.replace(old, new))


def test_magma_and_architectures_that_are_missing_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match="USE_MAGMA is False, and promised"):
        look(monkeypatch, magma=False)
    with pytest.raises(AssertionError, match="it has no code for sm_100"):
        look(monkeypatch, CONFIG, {"CODES": "sm_80 sm_100"})


def test_a_torch_without_a_spec_promises_openmp_and_any_blas(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nothing = {"BLAS": "", "CODES": "", "SWITCHES": ""}
    config = CONFIG.replace("USE_CUDNN=ON", "USE_CUDNN=OFF").replace("=mkl", "=generic")
    look(monkeypatch, config, nothing, magma=False)
    with pytest.raises(AssertionError, match="USE_OPENMP is OFF"):
        look(monkeypatch, config.replace("OPENMP=ON", "OPENMP=OFF"), nothing)
    with pytest.raises(AssertionError, match="its BLAS is none"):
        look(monkeypatch, config.replace("BLAS_INFO=generic, ", ""), nothing)
