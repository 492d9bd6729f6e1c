"""`farm.toml`, right and wrong."""

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from farm.tests.tables import create_tables
from torchyard.errors import ConfigError, HostError, UsageError
from torchyard.host.process_id import is_running
from torchyard_farm.cli.daily import command as daily
from torchyard_farm.cli.init import command as init
from torchyard_farm.cli.nightly import command as nightly
from torchyard_farm.cli.stop import command as stop
from torchyard_farm.settings.farm import load_farm, parse_farm
from torchyard_farm.settings.layout import (
    farm_text,
    make_master,
    make_secrets,
    read_secret,
    refuse_running,
)

GOOD = """
file = "torchyard.toml"
listen = "0.0.0.0:9999"
[worker.gpu]
platform = "linux-x86_64"
memory = "64 GB"
disk = "1 TB"
slots = 2
capabilities = ["cuda"]
[nightly.main]
at = "02:00"
days = ["mon", "fri"]
subset = "nightly"
[daily.published]
at = "06:30"
channel = "nightly"
url = "https://example.org/nightly/"
"""


def test_a_file_is_read() -> None:
    farm = parse_farm(GOOD)
    assert farm.listen.endpoint == "tcp:9999:interface=0.0.0.0"
    (machine,) = farm.machines
    assert (machine.memory, machine.disk) == (64, 1000)
    assert machine.worker_names == ("gpu-1", "gpu-2")
    (nightly,) = farm.nightlies
    assert (nightly.times.clock.hour, nightly.times.days) == (2, (0, 4))
    (daily,) = farm.dailies
    assert (daily.url, len(daily.times.days)) == ("https://example.org/nightly", 7)


def test_an_address_of_the_newer_kind_is_read() -> None:
    farm = parse_farm(f'web = "[::1]:8010"\n{GOOD.replace("0.0.0.0:9999", "[::1]:9999")}')
    assert (farm.url, farm.tls) == ("http://[::1]:8010/", False)
    assert farm.listen.endpoint == r"tcp:9999:interface=\:\:1"


def test_the_first_file_is_a_good_one() -> None:
    farm = parse_farm(farm_text("/p/torchyard.toml", "sqlite://", ["linux-x86_64", "macos-arm64"]))
    assert [machine.platform for machine in farm.machines] == ["linux-x86_64", "macos-arm64"]
    assert farm.heartbeat + farm.patience <= 60


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("64 GB", "64", "`worker.gpu.memory`: `64` is not a number with one of the units"),
        ("0.0.0.0:9999", "9999", "`listen`: `9999` is not a host and a port"),
        ("0.0.0.0:9999", "0.0.0.0:99999", "`0.0.0.0:99999` is not a host and a port"),
        ("0.0.0.0:9999", "::1:9999", "`::1:9999` is not a host and a port"),
        ("x86_64", "x86-64", "unknown platform `linux-x86-64`: did you mean `linux-x86_64`?"),
        ("file =", 'database = "mysql://db/farm"\nfile =', "`database` is neither postgresql://"),
        ("worker.gpu", "worker.calendar", "`calendar` is the name of the master's own worker"),
        ("slots = 2", "slots = 0", "`gpu` needs at least one slot"),
        ("cuda", "cu/da", "`cu/da` can't be a name"),
        ("slots = 2", "publish = true", "`gpu` runs publish jobs only"),
        ("slots", "slot", "unknown key `slot`"),
        ('file = "torchyard.toml"', "", "lacks the required key `file`"),
        ("[worker.gpu]", "attempts = 0\n[worker.gpu]", "`attempts` must be 1 or more"),
        ("[worker.gpu]", "shared = true\n[worker.gpu]", "several masters need PostgreSQL"),
        ("02:00", "2:00", "`main`: `2:00` is not a time of day, such as 02:00 (UTC)"),
        ("02:00", "24:00", "`24:00` is not a time of day"),
        ('"fri"', '"Friday"', "`Friday` is not a day: write mon, tue"),
        ("nightly.main", "nightly.published", "`published` is also the name of a nightly"),
        ("nightly.main", 'nightly."a@b"', "`a@b` can't be a name"),
        ("https://example.org/nightly/", "/srv/nightly", "`daily.published.url`: no installer"),
        (
            "https://example.org/nightly/",
            "s3://nightly",
            "no installer reads `s3://nightly`: write",
        ),
        ("https://example.org/nightly/", "https:///nightly", "not a complete address: write"),
        (
            "[daily.published]",
            '[daily.published]\nextra_index_urls = ["example.org"]',
            "`daily.published.extra_index_urls`: no installer reads `example.org`",
        ),
    ],
)
def test_what_is_wrong_is_told(old: str, new: str, what: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_farm(GOOD.replace(old, new))
    assert what in str(caught.value)


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_farm(GOOD.replace("64 GB", "much").replace("1 TB", "more"))
    assert len(caught.value.diagnostics) == 2


def test_what_is_given_is_written_as_toml_wants_it() -> None:
    database = 'postgresql://farm:a"b\\c@db/farm'
    assert parse_farm(farm_text('/my "p"/torchyard.toml', database, [])).database == database


def test_a_farm_that_is_there_needs_no_project_to_be_brought_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on the machine of a second master, which may have no project."""
    (tmp_path / "farm.toml").write_text(GOOD.replace("listen", "# listen"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(init, [str(tmp_path)], catch_exceptions=False)
    assert "workers gpu" in done.stderr
    create_tables(f"sqlite:///{tmp_path}/another.sqlite")  # as other tests do
    made, another = (tables_of(tmp_path / f"{name}.sqlite") for name in ("state", "another"))
    assert made == another
    assert len(made) > 30


def tables_of(path: Path) -> set[str]:
    """Return the lines of a database's definition, and its version.

    Without foreign keys: where tables refer to each other, SQLAlchemy leaves out some for SQLite.
    """
    with closing(sqlite3.connect(path)) as database:
        lines = "\n".join(database.iterdump()).splitlines()
    return {line.strip(" \t,") for line in lines if "FOREIGN KEY" not in line}


@pytest.mark.parametrize("command", [nightly, daily])
@pytest.mark.parametrize("due", ["yesterday", "2026-11-15", "2026-11-15T02:00:00+01:00"])
def test_what_is_due_is_due_at_a_moment(tmp_path: Path, command: click.Command, due: str) -> None:
    with pytest.raises(UsageError, match="is not a time"):
        CliRunner().invoke(command, [str(tmp_path), "x", "--due", due], catch_exceptions=False)


@pytest.mark.parametrize("mode", [0o750, 0o705])
def test_what_others_can_read_is_no_place_for_a_master(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    with pytest.raises(HostError, match="other users can read"):
        make_master(tmp_path, GOOD, datetime.now(UTC))
    assert not list(tmp_path.iterdir())


def test_a_directory_without_a_farm(tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"is not a farm: it has no farm\.toml"):
        load_farm(tmp_path)


def test_passwords_are_for_one_user_and_stay(tmp_path: Path) -> None:
    farm = parse_farm(GOOD)
    make_secrets(tmp_path, farm)
    first = read_secret(tmp_path, "gpu")
    make_secrets(tmp_path, farm)
    assert read_secret(tmp_path, "gpu") == first
    assert len({first, read_secret(tmp_path, "admin")}) == 2
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "secrets").iterdir()} == {0o600}


@contextmanager
def sleeper(folder: Path) -> Iterator[int]:
    """Return a process with this working directory."""
    with subprocess.Popen(["sleep", "600"], cwd=folder) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def test_a_master_is_not_started_twice(tmp_path: Path) -> None:
    refuse_running(tmp_path)
    with sleeper(tmp_path) as number:
        (tmp_path / "twistd.pid").write_text(str(number), encoding="ascii")
        with pytest.raises(HostError, match=f"is running already: process {number}"):
            refuse_running(tmp_path)
    refuse_running(tmp_path)


def test_the_number_of_a_killed_master_may_be_that_of_another_process(tmp_path: Path) -> None:
    farm, number = tmp_path / "farm", tmp_path / "farm/twistd.pid"
    farm.mkdir()
    (farm / "farm.toml").write_text(GOOD, encoding="utf-8")
    with sleeper(tmp_path) as other:
        for one in (other, os.getpid()):
            number.write_text(str(one), encoding="ascii")
            refuse_running(farm)
            assert not number.exists(), "Buildbot would not start"
        number.write_text(str(other), encoding="ascii")
        done = CliRunner().invoke(stop, [str(farm)], catch_exceptions=False)
        assert "no master runs in" in done.stderr
        assert is_running(other)


def test_no_password_is_empty(tmp_path: Path) -> None:
    farm = parse_farm(GOOD)
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/admin").write_text("\n", encoding="utf-8")
    make_secrets(tmp_path, farm)
    assert len(read_secret(tmp_path, "admin")) == len("torchyard-secret-") + 32
    assert sorted(path.name for path in (tmp_path / "secrets").iterdir()) == ["admin", "gpu"]
