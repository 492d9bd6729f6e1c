"""The channel of real parts that stands for conda-forge: solvers install it, its compilers work."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.support.conda import SUBDIR, solve_and_install
from tests.support.conda_forge import MISSING, conda_forge

from torchyard.package.conda.index import RUN_EXPORTS
from torchyard.package.read import read_package

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING) or os.geteuid() != 0, reason=MISSING or "apt-get asks root"),
]


def test_an_installed_compiler_compiles_for_its_own_sysroot(tmp_path: Path) -> None:
    prefix, source = tmp_path / "prefix", tmp_path / "main.cpp"
    solve_and_install(conda_forge(), ["gxx_linux-64", "bash"], prefix)
    source.write_text("#include <gnu/libc-version.h>\nint main() {}\n", encoding="utf-8")
    script = f"""\
export CONDA_PREFIX={prefix} PREFIX={prefix}
for file in {prefix}/etc/conda/activate.d/*; do . $file; done
test -d $CONDA_BUILD_SYSROOT/usr/include
$CXX $CXXFLAGS -E {source} | grep gnu/libc-version.h"""
    argv = [str(prefix / "bin/bash"), "-euc", script]
    said = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    assert f'"{prefix}/x86_64-conda-linux-gnu/sysroot/usr/include/' in said
    assert '"/usr/include/' not in said


@pytest.mark.parametrize(
    ("name", "exports"),
    [
        ("gxx_linux-64", '{"strong":["libgcc >=12","libstdcxx >=12"]}'),
        ("libopenblas", '{"weak":["libopenblas >=0.3.'),
    ],
)
def test_packages_have_the_run_exports_of_conda_forge(name: str, exports: str) -> None:
    (package,) = (conda_forge() / SUBDIR).glob(f"{name}-*.conda")
    found = read_package(package).texts[RUN_EXPORTS].decode()
    assert "".join(found.split()).startswith("".join(exports.split()))
