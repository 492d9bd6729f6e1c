"""Users, roles, and what each of them may do."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from twisted.web.test.requesthelper import DummyChannel

from torchyard.errors import ConfigError, UsageError
from torchyard_farm.cli.user import command
from torchyard_farm.master.buildbot_fixes.web_responses import HardenedRequest
from torchyard_farm.scheduling.job_classes import PUBLISH, may_publish
from torchyard_farm.settings.farm import load_farm, parse_farm
from torchyard_farm.settings.layout import make_secrets, read_secret
from torchyard_farm.settings.roles import ADMIN, ROLES, Role, needed_role
from torchyard_farm.settings.schedules import SCHEDULE_BUILDER

FARM = """
file = "torchyard.toml"
[worker.w1]
platform = "linux-x86_64"
memory = "8 GB"
disk = "8 GB"
[user.ana]
roles = ["force", "stop"]
"""


@pytest.mark.parametrize(
    ("kind", "verb", "role", "publishing"),
    [
        ("build", "rebuild", "force", "publish"),
        ("forcescheduler", "force", None, None),
        ("buildrequest", "set_priority", None, None),
        ("build", "stop", "stop", "stop"),
        ("buildrequest", "cancel", "stop", "stop"),
        ("worker", "pause", "stop", "stop"),
        ("scheduler", "enable", "stop", "stop"),
        ("build", "REBUILD", None, None),
        ("worker", "force", None, None),
        ("root", "anything", None, None),
    ],
)
def test_what_a_role_allows(
    kind: str, verb: str, role: Role | None, publishing: Role | None
) -> None:
    assert needed_role(kind, verb, publishes=False) == role
    assert needed_role(kind, verb, publishes=True) == publishing


def test_what_publishes_in_the_end_is_for_those_who_may_publish() -> None:
    assert may_publish(PUBLISH)
    assert may_publish(SCHEDULE_BUILDER), "a nightly hands in a plan"
    assert not may_publish("linux-x86_64+cuda")


def test_users_are_read_and_get_passwords(tmp_path: Path) -> None:
    farm = parse_farm(FARM)
    assert farm.users == {ADMIN: ROLES, "ana": ("force", "stop")}
    make_secrets(tmp_path, farm)
    assert len({read_secret(tmp_path, name) for name in ("ana", "w1", ADMIN)}) == 3
    assert parse_farm(f"{FARM}[user.admin]\nroles = []").users[ADMIN] == ()


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('"stop"', '"stops"', "`user.ana.roles[1]` can't be `stops`"),
        ("[user.ana]", "[user.w1]", "`w1` is a worker: a user can't have the same name"),
        ("[user.ana]", '[user."../x"]', "`../x` can't be a name"),
        ("[worker.w1]", "[worker.admin]", "`admin` is a worker: a user can't"),
        ("[worker.w1]", 'web = "0.0.0.0:80"\n[worker.w1]', "passwords would be sent unencrypted"),
        (
            "[worker.w1]",
            'certificate = "c"\n[worker.w1]',
            "`certificate` and `key` need each other",
        ),
        (
            "[worker.w1]",
            'certificate = "c"\nkey = "k"\ntls = false\n[worker.w1]',
            "`tls = false` does not use a certificate",
        ),
    ],
)
def test_what_would_let_others_in_is_refused(old: str, new: str, what: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_farm(FARM.replace(old, new))
    assert what in str(caught.value)


def test_a_proxy_may_be_in_front() -> None:
    keys = 'web = "0.0.0.0:80"\nurl = "https://farm.example.org"\n[worker.w1]'
    assert parse_farm(FARM.replace("[worker.w1]", keys)).url == "https://farm.example.org/"
    keys = 'web = "0.0.0.0:80"\ntls = false\n[worker.w1]'
    assert parse_farm(FARM.replace("[worker.w1]", keys)).url == "http://0.0.0.0:80/"


def test_a_user_is_added_once(tmp_path: Path) -> None:
    (tmp_path / "farm.toml").write_text(FARM, encoding="utf-8")
    argv = [str(tmp_path), "eve", "--role", "publish", "--role", "stop"]
    done = CliRunner().invoke(command, argv, catch_exceptions=False)
    assert done.stdout == f"{tmp_path}/secrets/eve\n"
    assert load_farm(tmp_path).users["eve"] == ("publish", "stop")
    assert len(read_secret(tmp_path, "eve").removeprefix("torchyard-secret-")) == 32
    with pytest.raises(UsageError, match="the user `eve` exists already"):
        CliRunner().invoke(command, argv, catch_exceptions=False)
    for name in ("../eve", 'a"]\nroles = ["force"]\n[user."b'):
        argv = [str(tmp_path), name, "--role", "stop"]
        with pytest.raises(UsageError, match="can't be a name"):
            CliRunner().invoke(command, argv, catch_exceptions=False)
    done = CliRunner().invoke(command, [str(tmp_path), "bob"])
    assert "Missing option '--role'" in done.stderr
    assert len(load_farm(tmp_path).users) == 3


def test_who_adds_a_user_lets_nobody_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "farm.toml"
    path.write_text(FARM, encoding="utf-8")
    path.chmod(0o600)
    argv = [str(tmp_path), "eve", "--role", "stop"]
    CliRunner().invoke(command, argv, catch_exceptions=False)
    assert "eve" in load_farm(tmp_path).users
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("is_behind_tls", [True, False])
def test_sessions_behind_tls_stay_there(
    monkeypatch: pytest.MonkeyPatch, is_behind_tls: bool
) -> None:
    monkeypatch.setattr(HardenedRequest, "is_behind_tls", is_behind_tls)
    request = HardenedRequest(DummyChannel(), False)
    request.addCookie(b"name", b"value", path=b"/", secure=False)
    (cookie,) = request.cookies
    assert (b"Secure" in cookie) is is_behind_tls
    assert b"HttpOnly" in cookie
