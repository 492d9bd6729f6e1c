"""How workers authenticate their master, and their messages if that fails."""

import contextlib
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from farm.tests.farms import TrialFarm, wait_until
from tests.support.helpers import WORKS, make_project
from tests.support.services import LOOPBACK
from torchyard.errors import ConfigError, HostError, UsageError
from torchyard_farm.settings.farm import Farm, parse_farm
from torchyard_farm.settings.tls import (
    AUTHORITY,
    FOLDER,
    certificate_files,
    ensure_certificate,
    install_authorities,
    split_certificates,
    worker_endpoint,
)

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


def farm_of(*keys: str) -> Farm:
    return parse_farm("\n".join(('file = "f"', *keys)))


def certificate_of(folder: Path, farm: Farm) -> x509.Certificate:
    return x509.load_pem_x509_certificate(certificate_files(folder, farm).certificate.read_bytes())


def test_only_this_machines_own_address_goes_without_tls(tmp_path: Path) -> None:
    assert worker_endpoint(tmp_path, farm_of()) == r"tcp:9989:interface=127.0.0.1"
    assert not farm_of('listen = "localhost:1"').tls
    assert farm_of('listen = "0.0.0.0:1"').tls
    assert farm_of('listen = "farm.example.org:1"').tls
    assert not farm_of('listen = "0.0.0.0:1"', "tls = false").tls
    assert farm_of('certificate = "c.pem"', 'key = "k.pem"').tls


def test_a_certificate_is_made_once_and_anew_when_it_has_to_be(tmp_path: Path) -> None:
    farm = farm_of(
        "tls = true", 'names = ["farm.example.org", "192.0.2.7", "*.example.org", "2001:db8::1"]'
    )
    ensure_certificate(tmp_path, farm, NOW)
    first = certificate_of(tmp_path, farm)
    authority = (tmp_path / FOLDER / AUTHORITY).read_bytes()
    names = first.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {"farm.example.org", "localhost"} <= set(names.get_values_for_type(x509.DNSName))
    assert {str(a) for a in names.get_values_for_type(x509.IPAddress)} == {
        "192.0.2.7",
        "2001:db8::1",
        LOOPBACK,
    }
    ensure_certificate(tmp_path, farm, NOW + timedelta(days=300))
    assert certificate_of(tmp_path, farm) == first
    ensure_certificate(tmp_path, farm, NOW + timedelta(days=400))
    second = certificate_of(tmp_path, farm)
    assert second.not_valid_after_utc > first.not_valid_after_utc
    ensure_certificate(tmp_path, farm_of("tls = true"), NOW + timedelta(days=400))
    assert certificate_of(tmp_path, farm) != second
    assert (tmp_path / FOLDER / AUTHORITY).read_bytes() == authority
    keys = {path.stat().st_mode & 0o777 for path in (tmp_path / FOLDER).glob("*.key")}
    assert keys == {0o600}
    assert (tmp_path / FOLDER).stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("torn", ["master.pem", "master.key"])
def test_a_certificate_that_was_half_written_is_made_anew(tmp_path: Path, torn: str) -> None:
    farm = farm_of("tls = true")
    ensure_certificate(tmp_path, farm, NOW)
    first = certificate_of(tmp_path, farm)
    authority = (tmp_path / FOLDER / AUTHORITY).read_bytes()
    (tmp_path / FOLDER / torn).write_bytes(b"")
    ensure_certificate(tmp_path, farm, NOW)
    assert certificate_of(tmp_path, farm) != first
    assert (tmp_path / FOLDER / AUTHORITY).read_bytes() == authority


@pytest.mark.parametrize(
    "name", ["m\u00fcnchen.example.org", "farm.example.org:9989", "https://x", ""]
)
def test_a_name_that_no_certificate_can_have_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="is neither an ASCII host name"):
        farm_of(f'names = ["{name}"]')


def test_files_that_are_no_certificate_are_refused_before_a_master_starts(tmp_path: Path) -> None:
    farm = farm_of('certificate = "c.pem"', 'key = "k.pem"')
    with pytest.raises(HostError, match=r"c\.pem.* can't be loaded: .*No such file"):
        ensure_certificate(tmp_path, farm, NOW)
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        ensure_certificate(tmp_path / place, farm_of("tls = true"), NOW)
    (tmp_path / "a/tls/master.pem").rename(tmp_path / "c.pem")
    (tmp_path / "b/tls/master.key").rename(tmp_path / "k.pem")
    with pytest.raises(HostError, match=r"can't be loaded: .*mismatch"):
        ensure_certificate(tmp_path, farm, NOW)


def test_a_certificate_that_is_given_brings_its_chain(tmp_path: Path) -> None:
    farm = farm_of('certificate = "c:1.pem"', 'key = "k.pem"')
    ensure_certificate(tmp_path, farm_of("tls = true"), NOW)
    both = [tmp_path / FOLDER / name for name in ("master.pem", AUTHORITY)]
    (tmp_path / "c:1.pem").write_bytes(b"".join(path.read_bytes() for path in both))
    assert len(split_certificates(tmp_path / "c:1.pem")) == 2
    assert worker_endpoint(tmp_path, farm).endswith(rf":extraCertChain={tmp_path}/c\:1.pem")


def test_each_authority_of_a_file_is_trusted(tmp_path: Path) -> None:
    ensure_certificate(tmp_path, farm_of("tls = true"), NOW)
    bundle = tmp_path / "bundle.pem"
    one = (tmp_path / FOLDER / AUTHORITY).read_bytes()
    bundle.write_bytes(b"# ours\n" + one + b"# and again\n" + one)
    install_authorities(bundle, tmp_path / "trust")
    assert len(list((tmp_path / "trust").glob("*.pem"))) == 2
    bundle.write_bytes(b"nothing")
    with pytest.raises(UsageError, match="contains no certificate"):
        install_authorities(bundle, tmp_path / "trust")


@contextlib.contextmanager
def impostor(folder: Path | None) -> Iterator[int]:
    """A server in place of a master: with a certificate, or without TLS."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    if folder is not None:
        context.load_cert_chain(folder / FOLDER / "master.pem", folder / FOLDER / "master.key")
    with socket.create_server((LOOPBACK, 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    line, _ = server.accept()
                    with line, contextlib.suppress(OSError):
                        if folder is None:
                            line.sendall(b"\x82\x80" + b"not a hello of TLS" * 9)
                        else:
                            context.wrap_socket(line, server_side=True).recv(1)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def worker(folder: Path, port: int, *more: str) -> tuple[int, str]:
    """Run a worker that is expected to exit."""
    (folder / "password").write_text("secret", encoding="utf-8")
    argv = [sys.executable, "-m", "torchyard", "farm", "worker", str(folder / "work")]
    argv += ["--master", f"{LOOPBACK}:{port}", "--name", "w1"]
    argv += ["--password-file", str(folder / "password"), *more]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=300)
    return done.returncode, " ".join(done.stderr.split())


@pytest.mark.integration
@pytest.mark.slow
def test_a_worker_ends_if_its_master_can_not_be_trusted(tmp_path: Path) -> None:
    now = datetime.now(tz=UTC)
    for name, at in (("ours", now), ("theirs", now), ("old", now - timedelta(days=900))):
        (tmp_path / name).mkdir()
        ensure_certificate(tmp_path / name, farm_of("tls = true"), at)
    (tmp_path / "other").mkdir()
    ensure_certificate(tmp_path / "other", farm_of("tls = true", 'listen = "192.0.2.7:1"'), now)
    for folder, what, hint in (
        ("theirs", "can't be trusted: certificate verify failed", "--ca is a copy of its tls/ca"),
        ("old", "can't be trusted: certificate verify failed", "that its certificate is valid"),
        ("other", "is for other names than this one", "add this one to `names` in farm.toml"),
        (None, "does not speak TLS", "--no-tls connects without"),
    ):
        theirs = tmp_path / folder if folder else None
        authority = "ours" if folder in (None, "theirs") else folder
        with impostor(theirs) as port:
            code, told = worker(tmp_path, port, "--ca", str(tmp_path / authority / "tls/ca.pem"))
        assert code == 7, told
        assert what in told
        assert hint in told


@pytest.mark.integration
@pytest.mark.slow
def test_a_worker_without_an_authority_trusts_those_of_the_system(tmp_path: Path) -> None:
    ensure_certificate(tmp_path, farm_of("tls = true"), datetime.now(tz=UTC))
    with impostor(tmp_path) as port:
        code, told = worker(tmp_path, port, "--tls")
    assert (code, "certificate verify failed" in told) == (7, True)


@pytest.mark.integration
@pytest.mark.slow
def test_a_plan_is_built_over_tls_by_those_who_know_the_password(tmp_path: Path) -> None:
    file = make_project(tmp_path / "project", WORKS)
    with TrialFarm(
        tmp_path / "farm", file, "sqlite:///state.sqlite", ("w1",), keys="tls = true\n"
    ) as farm:
        farm.start_master()
        authority = str(farm.master / "tls/ca.pem")
        code, told = worker(tmp_path, farm.port, "--ca", authority)
        assert (code, "refuses `w1`: it has another password" in told) == (7, True), told
        plain = farm.start_worker("w1", "--no-tls")
        out = tmp_path / "farm/w1.out"
        wait_until(lambda: b"does not answer" in out.read_bytes(), 240, farm.log)
        plain.terminate()
        plain.wait()
        farm.start_worker("w1", "--ca", authority)
        farm.wait_done(farm.submit("core:*"))
        assert out.read_bytes().count(b"working for the master at 127.0.0.1:") == 1
        farm.kill("master")
        wait_until(
            lambda: b"the connection to the master at 127.0.0.1:" in out.read_bytes(), 240, farm.log
        )
        farm.start_master()
        wait_until(lambda: out.read_bytes().count(b"working for") == 2, 240, farm.log)
