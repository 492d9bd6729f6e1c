"""Where a worker's credentials come from, and where they must never appear."""

import json
import os
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from farm.tests.farms import TrialFarm, postgres_programs, wait_until
from tests.support.publishing import PUBLISHES, make_publishing_project
from tests.support.services import Place, S3Server
from torchyard.errors import HostError
from torchyard.model.recipe import Stage
from torchyard.publish.channel.channel import Channel
from torchyard.store.store import Store
from torchyard.store.trees import read_result_log
from torchyard_farm.worker.credentials import take_worker_credentials

ONE_PYTHON = PUBLISHES.replace('"cp311", "cp312"', '"cp312"')

UPLOADS = """
[worker.uploads]
platform = "linux-x86_64"
memory = "8 GB"
disk = "8 GB"
publish = true
"""

SNOOPS = r"""
for p in /proc/[0-9]*; do
  grep -qaE 'torchyard|buildbot' $p/cmdline || continue
  echo "process $p: $(tr '\0' ' ' < $p/cmdline)"
  tr '\0' '\n' < $p/environ || true
done 2> /dev/null
echo "files:"
grep -raisE 'AWS_|secret' ../.. | head -c 100000 || true
"""
"""Print the environment of all processes of the farm, and the files beside the job."""


def test_secrets_of_a_file_are_kept_and_all_else_is_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torchyard.host.secrets._taken", {})
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of-the-environment")
    monkeypatch.setenv("AWS_REGION", "elsewhere")
    path = tmp_path / "keys"
    path.touch(mode=0o600)
    path.write_text('AWS_SECRET_ACCESS_KEY = "of-the-file"\nAWS_REGION = "eu-1"\n', "utf-8")
    found = take_worker_credentials(path)
    assert sorted(found.values()) == ["of-the-environment", "of-the-file"]
    assert "AWS_SESSION_TOKEN" not in os.environ
    assert os.environ["AWS_REGION"] == "eu-1"


@pytest.mark.parametrize(
    ("text", "mode", "what"),
    [
        ("AWS_SECRET_ACCESS_KEY = hunter22", 0o600, "could not be read as credentials"),
        ('AWS_SECRET_ACCESS_KEY = "hunter22"', 0o640, "other users can read it"),
        ('AWS_SECRET = "hunter22"', 0o600, "unknown variables: AWS_SECRET"),
    ],
)
def test_a_file_that_is_wrong_is_not_shown(tmp_path: Path, text: str, mode: int, what: str) -> None:
    path = tmp_path / "keys"
    path.write_text(text, "utf-8")
    path.chmod(mode)
    with pytest.raises(HostError) as caught:
        take_worker_credentials(path)
    assert what in str(caught.value)
    assert "hunter22" not in str(caught.value)


def everything_in(folder: Path) -> bytes:
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return b"".join(path.read_bytes() for path in found)


def dump(url: str, master: Path) -> str:
    """Return the contents of a database, as text."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(master / "state.sqlite")) as database:
            return "\n".join(database.iterdump())
    programs = postgres_programs()
    assert programs is not None
    return subprocess.run(
        [programs / "pg_dump", url], check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with S3Server(tmp_path_factory.mktemp("s3")) as server:
        yield server.place()


@pytest.mark.slow
@pytest.mark.integration
@pytest.mark.parametrize(
    "database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True
)
def test_only_the_worker_that_publishes_has_credentials(
    tmp_path: Path, place: Place, database: str
) -> None:
    """A job searches for them, and the test in all files and pages of the farm."""
    snoops = f"[[steps.core]]\nrun = '''{SNOOPS}'''\n\n[[steps.core]]"
    text = ONE_PYTHON.replace("[[steps.core]]", snoops, 1)
    text = text.replace('url = "channel"', f'url = "{place.url}/channel"')
    text += '[sandbox]\nkind = "none"\n'
    file = make_publishing_project(tmp_path / "project", text)
    given: tuple[str, ...] = ("--publish",)
    env = place.environment
    if database.startswith("postgres"):
        given, env = (*given, "--credentials", str(write_keys(tmp_path / "keys", env))), {}
    with TrialFarm(tmp_path / "farm", file, database, ("w1",), tables=UPLOADS) as farm:
        farm.start_master()
        farm.start_worker("uploads", *given, env=env)
        wait_until(lambda: is_somebody_there(farm), 240, farm.log)
        farm.start_worker("w1", env={"SEEN": "by-everybody"})
        plan = farm.submit()
        farm.wait_done(plan)
        told = farm.read("workers") + farm.read("buildsets") + farm.read("builds?property=*")
        for build in farm.builds():
            told += farm.read(f"builds/{build['buildid']}/steps/run/logs/stdio/raw")
        told += dump(database, farm.master)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in place.environment.items():
            patch.setenv(name, value)
        assert list(Channel.at(f"{place.url}/channel").head().parts) == ["simple/demo"]
    store = Store.at(str(tmp_path / "project/.torchyard/store"))
    logs = {
        r.spec.task.stage: b"".join(read_result_log(store, r)).decode() for r in store.results()
    }
    assert "SEEN=by-everybody" in logs[Stage.CORE], "it could look"
    assert "--name uploads" in logs[Stage.CORE], "also at the one that has them"
    assert "publish:demo-1.0" in told
    (tmp_path / "keys").unlink(missing_ok=True)
    for secret in (place.access_key, place.secret_key):
        assert secret not in told + "".join(logs.values())
        assert secret.encode() not in everything_in(tmp_path)


def is_somebody_there(farm: TrialFarm) -> bool:
    return any(one["connected_to"] for one in json.loads(farm.read("workers"))["workers"])


def write_keys(path: Path, variables: Mapping[str, str]) -> Path:
    path.touch(mode=0o600)
    lines = (f'{name} = "{value}"\n' for name, value in variables.items())
    path.write_text("".join(lines), "utf-8")
    return path
