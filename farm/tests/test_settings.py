"""`farm.toml`, right and wrong."""

import os
from pathlib import Path

import pytest

from torchyard.errors import ConfigError, HostError
from torchyard_farm.settings.farm import load_farm, parse_farm
from torchyard_farm.settings.layout import farm_text, make_secrets, refuse_running, secret_of

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
    assert machine.agents == ("gpu-1", "gpu-2")
    (nightly,) = farm.nightlies
    assert (nightly.times.clock.hour, nightly.times.days) == (2, (0, 4))
    (daily,) = farm.dailies
    assert (daily.url, len(daily.times.days)) == ("https://example.org/nightly", 7)


def test_the_first_file_is_a_good_one() -> None:
    farm = parse_farm(farm_text("/p/torchyard.toml", "sqlite://", ["linux-x86_64", "macos-arm64"]))
    assert [machine.platform for machine in farm.machines] == ["linux-x86_64", "macos-arm64"]
    assert farm.heartbeat + farm.patience <= 60


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("64 GB", "64", "`worker.gpu.memory`: `64` is not a number with one of the units"),
        ("0.0.0.0:9999", "9999", "`listen`: `9999` is not an interface and a port"),
        ("slots = 2", "slots = 0", "`gpu` needs at least one slot"),
        ("cuda", "cu/da", "`cu/da` can't be a name"),
        ("slots = 2", "publish = true", "`gpu` publishes, and does nothing else"),
        ("slots", "slot", "unknown key `slot`"),
        ('file = "torchyard.toml"', "", "lacks the required key `file`"),
        ("[worker.gpu]", "attempts = 0\n[worker.gpu]", "`attempts` must be 1 or more"),
        ("[worker.gpu]", "shared = true\n[worker.gpu]", "several masters need a PostgreSQL"),
        ("02:00", "2:00", "`main`: `2:00` is no time of the day, such as 02:00 (UTC)"),
        ("02:00", "24:00", "`24:00` is no time of the day"),
        ('"fri"', '"Friday"', "`Friday` is no day: write mon, tue"),
        ("nightly.main", "nightly.published", "`published` is the name of a nightly, too"),
        ("nightly.main", 'nightly."a@b"', "`a@b` can't be a name"),
        ("https://example.org/nightly/", "/srv/nightly", "`/srv/nightly` is no address"),
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


def test_a_directory_without_a_farm(tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"is no farm: it has no farm\.toml"):
        load_farm(tmp_path)


def test_passwords_are_for_one_user_and_stay(tmp_path: Path) -> None:
    farm = parse_farm(GOOD)
    make_secrets(tmp_path, farm)
    first = secret_of(tmp_path, "gpu")
    make_secrets(tmp_path, farm)
    assert secret_of(tmp_path, "gpu") == first
    assert len({first, secret_of(tmp_path, "admin")}) == 2
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "secrets").iterdir()} == {0o600}


def test_a_master_is_not_started_twice(tmp_path: Path) -> None:
    refuse_running(tmp_path)
    (tmp_path / "twistd.pid").write_text(f"{os.getpid()}\n", encoding="ascii")
    with pytest.raises(HostError, match=f"runs already: process {os.getpid()}"):
        refuse_running(tmp_path)
    (tmp_path / "twistd.pid").write_text("999999999\n", encoding="ascii")
    refuse_running(tmp_path)


def test_no_password_is_empty(tmp_path: Path) -> None:
    farm = parse_farm(GOOD)
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/admin").write_text("\n", encoding="utf-8")
    make_secrets(tmp_path, farm)
    assert len(secret_of(tmp_path, "admin")) == 32
    assert sorted(path.name for path in (tmp_path / "secrets").iterdir()) == ["admin", "gpu"]
