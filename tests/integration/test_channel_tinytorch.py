"""The sample project's packages, published and used as their users would.

A few of them are built here; `TINYTORCH_PACKAGES` may name a directory with all of them instead.
"""

import hashlib
import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import pytest
from tests.conda import SYSTEM, make_channel
from tests.installers import Pip, Uv
from tests.recipe import shared_sample
from tests.served import Served, names
from tests.smoke import make_wheel

from torchyard.checks.smoke.conda import solve
from torchyard.host.machine import python_name

pytestmark = [pytest.mark.integration, pytest.mark.slow]

VIEW = "cpu-openblas"
USE = "import tinytorch as t; assert t.add([1, 2], [3, 4]) == [4, 6]; print(t.__version__)"
CELLS = ("{}/wheel", "{}/conda", "any/conda-libtorch", "any/conda-meta", "any/libtorch")
EXTERNAL = ("cuda-toolkit", "python", "python_abi", "typing_extensions")


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """All packages, or those for the Python that runs the tests."""
    if "TINYTORCH_PACKAGES" in os.environ:
        yield Path(os.environ["TINYTORCH_PACKAGES"])
        return
    folder = tmp_path_factory.mktemp("tinytorch")
    with shared_sample(tmp_path_factory) as project:
        for cell in CELLS:
            project.package(f"{VIEW}/{cell.format(python_name())}", folder)
        yield folder


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the packages require: wheels in name only, and a conda channel with a real Python."""
    folder = tmp_path_factory.mktemp("others")
    (folder / "wheels").mkdir()
    for dist in ("typing_extensions", "packaging"):
        make_wheel(folder / "wheels", version="99.0", dist=dist)
    make_channel(folder / "conda", [python_name()])
    return folder


def test_wheels_conda_packages_and_zips_work(
    served: Served, packages: Path, others: Path, tmp_path: Path
) -> None:
    served.publish(others / "wheels", "--variants", "compute-blas")
    served.publish(packages, *(f"--external={name}" for name in EXTERNAL))
    for installer in (Pip(), Uv()):
        target = tmp_path / installer.agent
        found = installer.install(f"{served.url}/{VIEW}/", "tinytorch", target)
        assert found["tinytorch"] == "1.2.0+cpu"
        (wheel,) = (n for n in names(served.nginx.asked(), ".whl") if n.startswith("tiny"))
        assert python_name() in wheel
        assert _use("python", PYTHONPATH=str(target)) == "1.2.0+cpu\n"

    prefix = tmp_path / "prefix"
    channels = [f"{served.url}/conda", (others / "conda").as_uri()]
    python = f"python 3.{python_name()[3:]}.*"
    spec = ["tinytorch ==1.2.0 cpu_openblas*", python]
    builds = solve(channels, spec, prefix, tmp_path / "cache", SYSTEM, exact=True)
    assert {"tinytorch", "libtinytorch", "python"} <= builds.keys()
    assert _use(str(prefix / "bin/python")) == "1.2.0+cpu\n"

    listing = f"{served.url}/libtorch/tinytorch/{VIEW}/latest.json"
    with urllib.request.urlopen(listing, timeout=10) as answer:  # noqa: S310 - it's http
        (file,) = json.load(answer)["files"]
    with urllib.request.urlopen(urljoin(listing, file["url"]), timeout=10) as answer:  # noqa: S310
        assert hashlib.file_digest(answer, "sha256").hexdigest() == file["sha256"]


def _use(python: str, **env: str) -> str:
    whole = {"PATH": os.environ["PATH"], **env}
    command = [python, "-c", USE]
    return subprocess.run(command, env=whole, check=True, stdout=-1, text=True).stdout
