"""The sample project's packages, published and used as their users would, whatever happens then.

A few of them are built here; `TINYTORCH_PACKAGES` may name a directory with all of them instead.
"""

import hashlib
import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urljoin

import pytest
from tests.support.conda import SYSTEM, make_channel, make_package
from tests.support.installers import Pip, RefusedError, Uv
from tests.support.recipe import shared_sample
from tests.support.served import Served, names
from tests.support.smoke import make_wheel

from torchyard.host.machine import python_name
from torchyard.smoke.conda import solve

pytestmark = [pytest.mark.integration, pytest.mark.slow]

VIEW = "cpu-openblas"
USE = "import tinytorch as t; assert t.add([1, 2], [3, 4]) == [4, 6]; print(t.__version__)"
CELLS = ("{}/wheel", "{}/conda", "any/conda-libtorch", "any/conda-meta", "any/libtorch")
RUNTIMES = ("libgcc", "libstdcxx")
NEEDED = ("cuda-toolkit", "python", "python_abi", "typing_extensions", *RUNTIMES)
EXTERNAL = [f"--external={name}" for name in NEEDED]


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
    for version in ("1.1.0", "1.3.0"):
        make_package(folder / version, "tinytorch", version, "cpu_openblas_0")
        make_wheel(folder / version, version=version, dist="tinytorch")
    return folder


class User(NamedTuple):
    """Somebody who wants the newest version, and what it needs of others."""

    served: Served
    others: Path
    folder: Path

    def publish(self, packages: Path) -> None:
        self.served.publish(self.others / "wheels", "--variants", "compute-blas")
        self.served.publish(packages, *EXTERNAL)

    def installs(self, place: str = "") -> None:
        """Pip, uv and py-rattler find the one that works, and it does."""
        began = time.monotonic()
        self.served.nginx.asked()
        folder = next(new for n in count() if not (new := self.folder / f"user-{n}").exists())
        for installer in (Pip(), Uv()):
            target = folder / installer.agent
            found = installer.install(f"{self.served.url}{place}/{VIEW}/", "tinytorch", target)
            assert found["tinytorch"] == "1.2.0+cpu"
            fetched = names(self.served.nginx.asked(), ".whl")
            (wheel,) = (name for name in fetched if name.startswith("tiny"))
            assert python_name() in wheel
            assert _use("python", PYTHONPATH=str(target)) == "1.2.0+cpu\n"
        channels = [f"{self.served.url}{place}/conda", (self.others / "conda").as_uri()]
        specs = ["tinytorch * cpu_openblas*", f"python 3.{python_name()[3:]}.*"]
        builds = solve(channels, specs, folder / "prefix", folder / "cache", SYSTEM, exact=True)
        assert {"tinytorch", "libtinytorch", "python"} <= builds.keys()
        assert _use(str(folder / "prefix/bin/python")) == "1.2.0+cpu\n"
        print(f"installed and used in {time.monotonic() - began:.1f} s")


@pytest.fixture
def user(served: Served, others: Path, tmp_path: Path) -> User:
    return User(served, others, tmp_path)


def test_wheels_conda_packages_and_zips_work(user: User, packages: Path) -> None:
    user.publish(packages)
    user.installs()
    listing = f"{user.served.url}/libtorch/tinytorch/{VIEW}/latest.json"
    with urllib.request.urlopen(listing, timeout=300) as answer:  # noqa: S310 - it's http
        (file,) = json.load(answer)["files"]
    with urllib.request.urlopen(urljoin(listing, file["url"]), timeout=300) as answer:  # noqa: S310
        assert hashlib.file_digest(answer, "sha256").hexdigest() == file["sha256"]


def test_a_version_that_does_not_work_comes_and_goes(
    user: User, packages: Path, others: Path
) -> None:
    """It is yanked, taken back and deleted; the one that works goes on, and is promoted."""
    served = user.served
    user.publish(packages)
    served.publish(others / "1.1.0")
    good = served.channel.head().generation
    served.publish(others / "1.3.0")
    found = Pip().install(f"{served.url}/{VIEW}/", "tinytorch", user.folder / "bad")
    assert found == {"tinytorch": "1.3.0"}
    served.call("channel", "yank", served.place, "tinytorch==1.3.0", "--reason", "it does not work")
    user.installs()
    served.call("channel", "rollback", served.place, "--generation", good)
    user.installs()
    with pytest.raises(RefusedError, match=r"tinytorch==1\.3\.0"):
        Pip().install(f"{served.url}/{VIEW}/", "tinytorch==1.3.0", user.folder / "none")
    served.call("channel", "prune", served.place, "--keep", "1")
    deleted = served.delete_hidden()
    assert len([key for key in deleted if key.endswith((".whl", ".conda"))]) == 4
    user.installs()
    files = {key.rpartition("/")[2] for key in _packages(served)}
    assert files >= {path.name for path in packages.rglob("*.*") if path.is_file()}
    assert not [file for file in files if "-1.1.0-" in file or "-1.3.0-" in file]
    served.call("channel", "promote", served.place, f"{served.place}/release", "*", *EXTERNAL)
    user.installs("/release")


def _packages(served: Served) -> list[str]:
    objects = served.channel.objects
    return [meta.key for shelf in ("packages/", "conda/") for meta in objects.list(shelf)]


def _use(python: str, **env: str) -> str:
    whole = {"PATH": os.environ["PATH"], **env}
    command = [python, "-c", USE]
    return subprocess.run(command, env=whole, check=True, stdout=-1, text=True).stdout
