"""Credentials: only publishing gets them, no job can find them, and nothing tells them."""

from hashlib import sha256
from pathlib import Path

import pytest
from tests.support.publishing import PUBLISHES, make_publishing_project, torchyard
from tests.support.services import Place
from tests.support.smoke import make_wheel

from torchyard.config.credentials import load_credentials
from torchyard.publish.channel.channel import Channel
from torchyard.store.store import Store
from torchyard.store.trees import read_result_log

pytestmark = pytest.mark.integration

KEY, SECRET = "AKIAIOSFODNN7EXAMPLE", 'wJalrXUtnFEMI/K7MDENG+"bPxRfi'
SECRETS = {
    "AWS_ACCESS_KEY_ID": KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_SESSION_TOKEN": "FwoGZXIvYXdzEBYaD",
}

SNOOPS = r"""
p=$$
while [ "$p" -gt 1 ]; do
  echo "process $p: $(tr '\0' ' ' < /proc/$p/cmdline)"
  tr '\0' '\n' < /proc/$p/environ || true
  p=$(sed 's/.*) //' /proc/$p/stat | cut -d' ' -f2)
done
"""
"""Print the environment of the step and of all processes that it descends from."""


def snooping(text: str = PUBLISHES) -> str:
    steps = f"[[steps.core]]\nrun = '''{SNOOPS}'''\n\n[[steps.core]]"
    return text.replace("[[steps.core]]", steps, 1)


def logs_of(store: Store) -> dict[str, str]:
    return {
        result.spec.task.stage.value: b"".join(read_result_log(store, result)).decode()
        for result in store.results()
    }


def everything_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.mark.parametrize("sandbox", [pytest.param("none", marks=pytest.mark.slow), "view"])
def test_no_job_finds_credentials_in_its_environment_or_its_parents(
    tmp_path: Path, sandbox: str
) -> None:
    publish = f"[[steps.publish]]\nrun = '''{SNOOPS}'''\n\n[steps]"
    text = snooping().replace("[steps]", publish)
    file = make_publishing_project(tmp_path, text)
    done = torchyard(
        "build", "-f", file, "--sandbox", sandbox, env={**SECRETS, "SEEN": "by-everybody"}
    )
    assert done.returncode == 0, done.stderr
    log = logs_of(Store.at(str(tmp_path / ".torchyard/store")))["core"]
    assert "torchyard.host.fork_server" in log, "what starts jobs is among them"
    assert "torchyard build" in log.replace("-m torchyard", "torchyard")
    assert "SEEN=by-everybody" in log, "what is not secret can be read"
    for name, value in SECRETS.items():
        assert value not in log
        assert value[:8] not in log
        assert f"{name}=***" not in log, "it was not even there to be redacted"


def test_publishing_gets_them_and_nothing_tells_them(tmp_path: Path) -> None:
    steps = (
        "[[steps.publish]]\n"
        'run = "env; printf %s \\"$AWS_SECRET_ACCESS_KEY\\" | sha256sum; false {channel}"\n\n'
        "[steps]"
    )
    file = make_publishing_project(tmp_path, PUBLISHES.replace("[steps]", steps))
    env = {**SECRETS, "HTTPS_PROXY": "http://me:hunter22@proxy.example:3128"}
    failed = torchyard("build", "-f", file, "--json", env=env)
    assert failed.returncode == 9, failed.stderr
    (log,) = (tmp_path / ".torchyard/work").glob("publish-*/log")
    told = log.read_text(encoding="utf-8")
    assert sha256(SECRET.encode()).hexdigest() in told, "the step had the real one"
    assert "AWS_SECRET_ACCESS_KEY=***" in told
    assert "AWS_SECRET_ACCESS_KEY=(the caller's)" in told
    assert "HTTPS_PROXY=http://***@proxy.example:3128" in told
    assert "HTTPS_PROXY=(the caller's)" in told
    file.write_text(file.read_text(encoding="utf-8").replace("; false", "; true"), "utf-8")
    done = torchyard("build", "-f", file, env=env)
    assert done.returncode == 0, done.stderr
    store = Store.at(str(tmp_path / ".torchyard/store"))
    told = "".join(logs_of(store).values())
    told += failed.stdout + failed.stderr + done.stdout + done.stderr
    for value in (*SECRETS.values(), "hunter22"):
        assert value not in told
        assert value.encode() not in everything_in(tmp_path)
    (published,) = [r for r in store.results() if r.spec.task.stage == "publish"]
    assert published.environment["AWS_SECRET_ACCESS_KEY"] == "(the caller's)"


@pytest.mark.slow
def test_a_build_in_a_bucket_publishes_to_a_bucket(tmp_path: Path, s3_place: Place) -> None:
    """The store needs credentials, too: jobs' own processes have them, where no step can look."""
    text = snooping().replace('url = "channel"', f'url = "{s3_place.url}/channel"')
    file = make_publishing_project(tmp_path, f'{text}\n[store]\nurl = "{s3_place.url}/store"\n')
    done = torchyard("build", "-f", file, env={**s3_place.environment, "SEEN": "by-everybody"})
    assert done.returncode == 0, done.stderr
    with pytest.MonkeyPatch.context() as patch:
        for name, value in s3_place.environment.items():
            patch.setenv(name, value)
        told = logs_of(Store.at(f"{s3_place.url}/store"))
        channel = Channel.at(f"{s3_place.url}/channel")
        assert list(channel.head().parts) == ["simple/demo"]
        assert (channel.head().generation, channel.head().name) == (1, "nightly")
    assert "SEEN=by-everybody" in told["core"]
    assert s3_place.secret_key not in "".join(told.values())
    assert s3_place.secret_key.encode() not in everything_in(tmp_path)


def test_a_refused_key_is_not_told(tmp_path: Path, s3_place: Place) -> None:
    env = {**s3_place.environment, **SECRETS}
    for more in ((), ("--traceback",)):
        failed = torchyard(*more, "publish", tmp_path, "--to", s3_place.url, env=env)
        assert failed.returncode == (1 if more else 75), failed.stderr
        for value in SECRETS.values():
            assert value not in failed.stderr


@pytest.mark.parametrize("more", [(), ("--traceback",)])
def test_an_address_with_a_password_is_refused_without_it(
    tmp_path: Path, more: tuple[str, ...]
) -> None:
    failed = torchyard(*more, "publish", tmp_path, "--to", f"s3://{KEY}:hunter22@bucket/channel")
    assert failed.returncode == (1 if more else 2)
    assert "s3://***@bucket/channel" in failed.stderr
    assert "hunter22" not in failed.stderr
    assert KEY not in failed.stderr


def test_a_file_with_a_password_is_refused_without_it(tmp_path: Path) -> None:
    text = PUBLISHES.replace('url = "channel"', 'url = "s3://me:hunter22@bucket/channel"')
    failed = torchyard("plan", "-f", make_publishing_project(tmp_path, text))
    assert failed.returncode == 3
    assert 'url = "s3://***@bucket/channel"' in failed.stderr
    assert "hunter22" not in failed.stderr


def test_the_table_names_variables_and_no_values() -> None:
    known = load_credentials()
    assert known["AWS_SECRET_ACCESS_KEY"].secret
    assert not known["AWS_REGION"].secret


SPIES = """
import os
p = os.getpid()
while p > 1:
    with open(f"/proc/{p}/environ", "rb") as file:
        if b"AKIA" in file.read():
            raise ImportError(f"there is a key in process {p}")
    with open(f"/proc/{p}/stat") as file:
        p = int(file.read().rpartition(")")[2].split()[1])
    with open(f"/proc/{p}/cmdline", "rb") as file:
        if b"torchyard" not in file.read():
            break  # who calls torchyard can't be kept from telling
"""


def test_a_package_that_is_tried_finds_no_credentials(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, {"demo_thing/__init__.py": SPIES})
    quick = ("--level", "import", "--environment", "clean", "--installer", "uv")
    done = torchyard("smoke", wheel, *quick, env=SECRETS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_compiler_that_planning_asks_finds_credentials(tmp_path: Path) -> None:
    spy = tmp_path / "gcc"
    spy.write_text(f'#!/bin/sh\nenv >> {tmp_path}/seen\nexec gcc "$@"\n', encoding="utf-8")
    spy.chmod(0o755)
    file = make_publishing_project(
        tmp_path / "project", f'{PUBLISHES}\n[toolchain]\ncompiler = "{spy}"\n'
    )
    torchyard("build", "-f", file, "source:*", env=SECRETS)
    seen = (tmp_path / "seen").read_text(encoding="utf-8")
    assert "PATH=" in seen
    assert not any(secret in seen for secret in SECRETS.values())
