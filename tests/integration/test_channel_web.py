"""Channels looked at by those who only have an address; nginx serves them."""

import json
from base64 import b64encode
from pathlib import Path

import msgspec
import pytest
from tests.support.channels import conda, libtorch, put, wheel
from tests.support.helpers import SMALL, Command
from tests.support.served import Served, directory_config
from tests.support.services import Nginx

from torchyard.errors import HostError, SelectionError, StoreError, UsageError
from torchyard.host.fetcher import Fetcher
from torchyard.publish.channel.channel import Channel

pytestmark = pytest.mark.integration

MACHINE = ("--python", "cp312", "--platform", "linux-x86_64", "--glibc", "2.28")


def _told(out: str, served: Served) -> object:
    """What a command tells, wherever it reads the channel."""
    found = json.loads(out)
    assert found.pop("channel") in (served.place, served.url)
    return found


def test_the_right_package_is_found_by_an_address(served: Served, release: Path) -> None:
    served.publish(release)
    put(served.channel, conda("torch"), libtorch("1.0", "cpu"))
    for kind, project in (("wheel", "tiny>=1.1"), ("conda", "torch"), ("libtorch", "torch")):
        words = (project, *MACHINE, "--cpu", "--package", kind, "--url", served.url, "--json")
        there = served.call("which", served.place, *words)
        served.nginx.asked()
        over_web = served.call("which", f"{served.url}/", *words)
        assert _told(over_web, served) == _told(there, served)
        asked = served.nginx.asked()
        assert {one.status for one in asked} == {200}
        suffixes = {Path(one.path).name.partition(".")[2] for one in asked}
        metadata = {suffix for suffix in suffixes if suffix.endswith(".whl.metadata")}
        assert suffixes - metadata == {"json", "json.zst"}, "the head, states; no page or package"
        assert len(metadata) == (kind == "wheel"), "what the chosen wheel requires"


def test_commands_name_the_address_that_was_given(served: Served, release: Path) -> None:
    served.publish(release)
    told = served.call("which", served.url, "tiny", *MACHINE, "--cpu")
    assert f"pip install --index-url {served.url}/cpu/ 'tiny==1.2+cpu'" in told


def test_what_is_missing_is_told_by_an_address(served: Served, tmp_path: Path) -> None:
    file = tmp_path / "torchyard.toml"
    file.write_text(SMALL, encoding="utf-8")
    made = libtorch("2.14.0", "cpu")
    cell = "torch-2.14.0/linux-x86_64/cpu-mkl/any/libtorch"
    planned = made._replace(entry=msgspec.structs.replace(made.entry, cell=cell))
    put(Channel.at(served.place, make=True), planned)
    over_web, there = (
        _told(served.call("channel", "coverage", place, "--json", "-f", file), served)
        for place in (served.url, served.place)
    )
    assert over_web == there
    assert isinstance(there, dict)
    assert ([c for c, p in there["cells"].items() if p == "there"], len(there["missing"])) == (
        [cell],
        7,
    )


def test_a_log_is_read_by_an_address(served: Served, release: Path) -> None:
    served.publish(release)
    over_web, there = (
        _told(served.call("channel", "log", place, "--json"), served)
        for place in (served.url, served.place)
    )
    assert over_web == there


def test_passwords_are_used_and_never_shown(
    tmp_path: Path, torchyard: Command, release: Path
) -> None:
    root = tmp_path / "channel"
    assert torchyard("publish", release, "--to", root).code == 0
    login = b64encode(b"me:secret").decode()
    check = f'if ($http_authorization != "Basic {login}") {{ return 401; }}\n'
    config = directory_config(root).replace("listen 80;", f"listen 80;\n{check}")
    with Nginx(tmp_path / "nginx", config) as nginx:
        refused = torchyard("which", nginx.url, "tiny", *MACHINE, "--cpu")
        address = nginx.url.replace("://", "://me:secret@")
        known = torchyard("which", address, "tiny", *MACHINE, "--cpu")
    assert refused.code == HostError.exit_code
    assert "its server requires another user name or password (401)" in refused.err
    assert known.code == 0
    assert "tiny==1.2+cpu" in known.out
    assert "secret" not in known.out + known.err


def test_addresses_without_a_channel_and_torn_ones(served: Served, release: Path) -> None:
    served.publish(release)
    torchyard = served.torchyard
    nothing = torchyard("which", f"{served.url}/cpu", "tiny", *MACHINE)
    assert nothing.code == SelectionError.exit_code
    assert f"no channel at `{served.url}/cpu`" in nothing.err
    digest = served.channel.head().parts["simple/tiny"].state
    objects = served.channel.objects
    objects.write(f"states/{digest[:2]}/{digest}.json.zst", b"other bytes")
    assert torchyard("which", served.url, "tiny", *MACHINE).code == StoreError.exit_code
    objects.write("channel.json", b"<!DOCTYPE html>")
    assert torchyard("which", served.url, "tiny", *MACHINE).code == StoreError.exit_code


def test_only_who_looks_may_come_over_the_web(torchyard: Command) -> None:
    """Servers of plain files take nothing."""
    done = torchyard("channel", "yank", "https://example.org/nightly", "tiny", "--reason", "broken")
    assert done.code == UsageError.exit_code
    assert "name the directory or bucket behind it" in done.err


def test_the_index_of_a_torch_is_found_with_its_plus(served: Served) -> None:
    """As people type it, and as pages and printed commands have it."""
    made = wheel("ext", "1.0", "cu130", ["torch==2.13.*"])
    put(Channel.at(served.place, make=True), made)
    for plus in ("+", "%2B"):
        for path in (f"torch-2.13{plus}cu130/ext/", f"torch-2.13.0{plus}cu130.html"):
            answer = Fetcher(f"{served.url}/").get(f"{served.url}/{path}")
            assert answer.found, path
            assert made.entry.sha256 in answer.data.decode()
