"""One set of settings: indexes, proxies, certificates and passwords, by variables and files."""

import base64
import os
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from torchyard.config.credentials import take_credentials
from torchyard.doctor.bench import Bench, BuildDemand
from torchyard.doctor.checks.network import network
from torchyard.errors import ElsewhereError, HostError
from torchyard.host import secrets
from torchyard.host.cache import cache_folder
from torchyard.host.network_faults import network_error, network_faults
from torchyard.host.network_settings import (
    NetworkSettings,
    _default_index,
    fetching_environment,
    installer_variables,
    network_settings,
)
from torchyard.host.secrets import redact
from torchyard.run.permissions import secrets_for
from torchyard.store.store import Store
from torchyard.toolchain.root import _installer_settings as root_settings

_FOREIGN = re.compile(
    r"(PIP|UV)_\w+|(?i:\w+_proxy)|SSL_CERT_\w+|\w+_CA_BUNDLE|NETRC|GIT_SSL_CAINFO"
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test an empty home, and no settings; those of the system are not looked at."""
    for name in filter(_FOREIGN.fullmatch, list(os.environ)):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("torchyard.host.network_settings._SYSTEM_FILES", _NO_FILES)
    monkeypatch.setattr(secrets, "_taken", {})
    return tmp_path


_NO_FILES: dict[str, tuple[str, ...]] = {"PIP_CONFIG_FILE": (), "UV_CONFIG_FILE": ()}


class Told(NamedTuple):
    """Settings as a user writes them: files of the home directory, variables."""

    files: dict[str, str]
    env: dict[str, str]

    def apply(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> NetworkSettings:
        for name, text in self.files.items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(text, encoding="utf-8")
        for name, text in self.env.items():
            monkeypatch.setenv(name, text)
        return network_settings()


PIP, UV = ".config/pip/pip.conf", ".config/uv/uv.toml"
DEFAULT = _default_index()
ONE, TWO = "https://one.example/simple", "https://two.example/simple"
INDEXES = {
    "nothing": (Told({}, {}), (DEFAULT,)),
    "pip.conf": (
        Told({PIP: f"[global]\nindex_url = {ONE}\nextra-index-url =\n  {TWO}\n  {ONE}\n"}, {}),
        (ONE, TWO),
    ),
    "the old pip.conf": (Told({".pip/pip.conf": f"[install]\nindex-url = {ONE}\n"}, {}), (ONE,)),
    "another pip.conf": (
        Told({PIP: f"[global]\nindex-url = {TWO}\n"}, {"PIP_CONFIG_FILE": os.devnull}),
        (DEFAULT,),
    ),
    "pip's variables": (
        Told({PIP: f"[global]\nindex-url = {TWO}\n"}, {"PIP_INDEX_URL": ONE}),
        (ONE,),
    ),
    "uv.toml": (
        Told({UV: f'[[index]]\nurl = "{TWO}"\n[[index]]\nurl = "{ONE}"\ndefault = true\n'}, {}),
        (ONE, TWO),
    ),
    "the part of uv.toml for pip": (Told({UV: f'[pip]\nindex-url = "{ONE}"\n'}, {}), (ONE,)),
    "an index of uv for some packages only": (
        Told({UV: f'index-url = "{ONE}"\n[[index]]\nurl = "{TWO}"\nexplicit = true\n'}, {}),
        (ONE,),
    ),
    "uv's before pip's": (
        Told({UV: f'index-url = "{ONE}"\n', PIP: f"[global]\nextra-index-url = {TWO}\n"}, {}),
        (ONE,),
    ),
    "names with variables": (
        Told(
            {},
            {
                "UV_DEFAULT_INDEX": ONE,
                "UV_INDEX": f"corp-net={TWO}",
                "UV_INDEX_CORP_NET_USERNAME": "me",
                "UV_INDEX_CORP_NET_PASSWORD": "a/b@c",
            },
        ),
        (ONE, "https://me:a%2Fb%40c@two.example/simple"),
    ),
    "none, by pip.conf": (Told({PIP: "[global]\nno-index = true\nfind-links = /srv/a\n"}, {}), ()),
    "none, by uv.toml": (Told({UV: "no-index = true\n"}, {}), ()),
    "a directory": (Told({}, {"UV_DEFAULT_INDEX": "/srv/größe"}), ("file:///srv/gr%C3%B6%C3%9Fe",)),
}


@pytest.mark.parametrize("name", INDEXES)
def test_indexes(name: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told, indexes = INDEXES[name]
    found = told.apply(home, monkeypatch)
    assert found.indexes == indexes
    env = fetching_environment()
    for key, value in env.items():
        monkeypatch.setenv(key, value)
    assert network_settings().indexes == indexes, "what programs are given means the same"


def test_directories_of_wheels_may_have_spaces_and_commas(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "[global]\nno-index = yes\nfind-links =\n  file:///srv/a%20b,c\n  /srv/d\n"
    found = Told({PIP: text}, {}).apply(home, monkeypatch)
    assert found.links == ("file:///srv/a%20b,c", "file:///srv/d")
    env = installer_variables()
    assert env["UV_FIND_LINKS"] == "file:///srv/a%20b%2Cc,file:///srv/d"
    assert env["PIP_FIND_LINKS"] == "file:///srv/a%20b,c file:///srv/d"
    assert env["PIP_NO_INDEX"] == "1"
    assert env["UV_DEFAULT_INDEX"] == "file:///nonexistent"


def test_files_that_settings_name_are_shown_in_a_root(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels, bundle = home / "a b", home / "my ca.pem"
    wheels.mkdir()
    bundle.touch()
    text = f"[global]\ncert = {bundle}\nno-index = yes\nfind-links = {wheels.as_uri()}\n"
    Told({PIP: text, ".netrc": "machine a login b password c\n"}, {}).apply(home, monkeypatch)
    options, env = root_settings()
    shown = {options[at + 2]: options[at + 1] for at, word in enumerate(options) if "bind" in word}
    assert shown[env["SSL_CERT_FILE"]] == str(bundle)
    assert shown[env["NETRC"]] == str(home / ".netrc")
    assert shown[env["PIP_CONFIG_FILE"]] == str(home / PIP)
    assert env["UV_FIND_LINKS"] == env["PIP_FIND_LINKS"]
    assert shown[env["UV_FIND_LINKS"].removeprefix("file://")] == str(wheels)


def test_a_root_shows_the_files_that_a_local_index_links_to(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, files = home / "mirror/simple/demo/index.html", home / "mirror/files"
    page.parent.mkdir(parents=True)
    files.mkdir()
    (home / "mirror/private").mkdir()
    page.write_text('<a href="../../files/demo.whl">demo</a> <a href="../../../.ssh/">x</a>')
    monkeypatch.setenv("PIP_INDEX_URL", (home / "mirror/simple").as_uri())
    options, env = root_settings()
    shown = {options[at + 2]: options[at + 1] for at, word in enumerate(options) if "bind" in word}
    index = env["UV_DEFAULT_INDEX"].removeprefix("file://")
    assert shown[index] == str(home / "mirror/simple")
    assert shown[f"{index.rpartition('/')[0]}/files"] == str(files)
    assert not {str(home / "mirror/private"), str(home / ".ssh")} & {*shown.values()}


AUTHORITIES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


@pytest.mark.parametrize("name", [*AUTHORITIES, "pip.conf"])
def test_an_authority_is_told_to_all_programs(
    name: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = {PIP: "[global]\ncert = /srv/ca.pem\n"} if name == "pip.conf" else {}
    told = Told(file, {} if file else {name: "/srv/ca.pem"})
    assert told.apply(home, monkeypatch).authorities == "/srv/ca.pem"
    env = fetching_environment()
    assert {env[one] for one in (*AUTHORITIES, "GIT_SSL_CAINFO")} == {"/srv/ca.pem"}
    assert env["UV_SYSTEM_CERTS"] == "1"


PROXY = "http://me:hunter22@proxy.example:3128"


@pytest.mark.parametrize(
    "name", ["https_proxy", "HTTPS_PROXY", "ALL_PROXY", "PIP_PROXY", "pip.conf"]
)
def test_a_proxy_is_told_to_all_programs(
    name: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = PROXY.removeprefix("http://")
    file = {PIP: f"[global]\nproxy = {bare}\n"} if name == "pip.conf" else {}
    found = Told(file, {} if file else {name: bare}).apply(home, monkeypatch)
    monkeypatch.setenv("NO_PROXY", ".inside.example")
    assert found.proxy_for("https://outside.example/simple/") == PROXY
    assert found.proxy_for("https://index.inside.example/simple/") == ""
    assert fetching_environment()["https_proxy"].endswith(bare)
    assert fetching_environment()["HTTPS_PROXY"].endswith(bare)


def test_a_password_comes_from_the_address_the_index_or_netrc(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "machine two.example login you password b:c\n"
    told = Told({PIP: "[global]\nindex-url = https://me:p%40ss@one.example/simple\n"}, {})
    found = told._replace(files={**told.files, ".netrc": lines}).apply(home, monkeypatch)
    assert found.login_for("https://one.example/files/a.whl") == "me:p@ss"
    assert found.login_for("http://one.example/files/a.whl") == "", "not without TLS"
    assert found.login_for("https://two.example/a") == "you:b:c"
    assert found.login_for("https://other:own@two.example/a") == "other:own"
    assert found.login_for("https://three.example/a") == ""


def test_a_keyring_is_asked_if_the_settings_say_so(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = home / "bin/keyring"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\ntest "$2 $3" = "{ONE} me" && echo hunter/22\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    index = "https://me@one.example/simple"
    found = Told({PIP: f"[global]\nindex-url = {index}\n"}, {}).apply(home, monkeypatch)
    assert found.indexes == (index,)
    monkeypatch.setenv("PIP_KEYRING_PROVIDER", "subprocess")
    assert network_settings().indexes == ("https://me:hunter%2F22@one.example/simple",)


@pytest.mark.parametrize("name", [PIP, UV])
def test_a_broken_file_is_named(name: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HostError, match=f"{name}` can't be read"):
        Told({name: "index-url https://a\n"}, {}).apply(home, monkeypatch)


def test_passwords_are_taken_out_of_the_environment_and_given_to_what_fetches(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {
        "HTTPS_PROXY": PROXY,
        "UV_INDEX": "https://tok3n@two.example/simple",
        "UV_INDEX_CORP_PASSWORD": "pa/ss",
        "NO_PROXY": "x",
        "LC_ALL": "de_DE@euro",
    }
    for name, text in told.items():
        monkeypatch.setenv(name, text)
    take_credentials()
    assert {*told} & {*os.environ} == {"NO_PROXY", "LC_ALL"}
    assert fetching_environment()["HTTPS_PROXY"] == PROXY
    assert network_settings().proxies["https"] == PROXY
    process = secrets_for("core", Store.at(str(home / "store")))  # type: ignore[arg-type]
    assert set(process) == {"HTTPS_PROXY", "UV_INDEX", "UV_INDEX_CORP_PASSWORD"}
    basic = base64.b64encode(b"me:hunter22").decode()
    said = redact(f"hunter22, {PROXY}, tok3n, pa/ss, pa%2Fss, Basic {basic}")
    assert said == "***, http://***@proxy.example:3128, ***, ***, ***, Basic ***"


FAULTS = {
    "clock": ("certificate verify failed: certificate is not yet valid (_ssl.c:992)",),
    "authority": ("certificate verify failed: unable to get local issuer certificate",),
    "proxy-password": ("Tunnel connection failed: 407 Proxy Authentication Required",),
    "password": ("HTTP status client error (401 Unauthorized) for url",),
    "proxy-kind": ("`socks5://127.0.0.1:1080` is not an HTTP proxy",),
    "name": ("[Errno -2] Name or service not known",),
    "network": ("[Errno 111] Connection refused",),
    "": ("error: no such option: --x",),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_said_of_the_network(name: str) -> None:
    hint = network_faults()[name].hint if name else None
    for said in FAULTS[name]:
        found = network_error(said)
        assert (found.diagnostics[0].hint if found else None) == hint
        assert isinstance(found, ElsewhereError) == (name in ("name", "network"))


def test_doctor_says_which_directory_of_wheels_is_missing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    links = f"{home.as_uri()} /srv/missing"
    Told({PIP: f"[global]\nno-index = true\nfind-links = {links}\n"}, {}).apply(home, monkeypatch)
    told = [found.what for found in network(Bench(BuildDemand(title=""), {}))]
    assert told == [
        "there is no directory of wheels `/srv/missing`",
        f"no index is asked, but {home.as_uri()}",
    ]


def test_caches_are_elsewhere_if_the_home_can_not_be_written_to(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert cache_folder("uv") == home / ".cache/torchyard/uv"
    assert "UV_CACHE_DIR" not in fetching_environment()
    other = tmp_path_factory.mktemp("tmp")
    monkeypatch.setattr("tempfile.tempdir", str(other))
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/none")
    assert cache_folder("uv") == other / f"torchyard-{os.geteuid()}/torchyard/uv"
    assert fetching_environment()["UV_CACHE_DIR"] == str(cache_folder("uv"))
