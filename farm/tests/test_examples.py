"""The examples for administrators, run with the programs that they are for."""

import re
import shutil
import socket
import ssl
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from farm.tests.farms import TrialFarm
from tests.helpers import WORKS, make_project
from tests.services import LOOPBACK, Nginx, reserved_port

EXAMPLES = Path(__file__).parents[1] / "examples"
NAME = "farm.example.org"
UNITS = sorted((EXAMPLES / "systemd").glob("*.service"))


def make_certificate(folder: Path) -> Path:
    """Create a self-signed certificate for two names, and its key."""
    path = folder / "farm.pem"
    argv = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={NAME}"]
    argv += ["-addext", f"subjectAltName=DNS:{NAME},IP:{LOOPBACK}"]
    argv += ["-keyout", str(folder / "farm.key"), "-out", str(path)]
    subprocess.run(argv, check=True, capture_output=True)
    return path


@pytest.mark.integration
def test_nginx_serves_the_web_interface_over_tls(tmp_path: Path) -> None:
    if shutil.which("nginx", path="/usr/sbin:/usr/bin") is None:
        pytest.skip("there is no nginx: apt-get install nginx-light")
    text = (EXAMPLES / "nginx.conf").read_text(encoding="utf-8")
    file = make_project(tmp_path / "project", WORKS)
    known = ssl.create_default_context(cafile=make_certificate(tmp_path))
    with (
        TrialFarm(tmp_path / "farm", file, "sqlite:///state.sqlite", ("w1",)) as farm,
        reserved_port() as port,
    ):
        for old, new in (
            ("/etc/ssl/farm", str(tmp_path / "farm")),
            ("127.0.0.1:8010", f"{LOOPBACK}:{farm.web}"),
            ("listen 443 ssl;", f"listen {LOOPBACK}:{port} ssl;"),
        ):
            assert old in text
            text = text.replace(old, new)
        farm.start_master()
        with Nginx(tmp_path / "nginx", text) as nginx:
            for path, what in (("", b"<html"), ("api/v2/masters", b'"masters"')):
                url = f"https://{LOOPBACK}:{port}/{path}"
                with urllib.request.urlopen(url, timeout=30, context=known) as answer:
                    assert what in answer.read()
            with socket.create_connection((LOOPBACK, nginx.port), timeout=30) as plain:
                plain.sendall(f"GET /x HTTP/1.0\r\nHost: {NAME}\r\n\r\n".encode())
                assert f"Location: https://{NAME}/x".encode() in plain.recv(4096)
            assert b"101 Switching Protocols" in upgrade(known, port)


def upgrade(known: ssl.SSLContext, port: int) -> bytes:
    """Open a websocket, as the web interface does, and return the answer."""
    lines = ["GET /ws HTTP/1.1", f"Host: {LOOPBACK}:{port}", "Upgrade: websocket"]
    lines += ["Connection: Upgrade", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]
    lines += ["Sec-WebSocket-Version: 13", f"Origin: https://{LOOPBACK}:{port}", "", ""]
    with (
        socket.create_connection((LOOPBACK, port), timeout=30) as raw,
        known.wrap_socket(raw, server_hostname=LOOPBACK) as secure,
    ):
        secure.sendall("\r\n".join(lines).encode())
        return secure.recv(4096)


@pytest.mark.parametrize("unit", UNITS, ids=[unit.stem for unit in UNITS])
def test_units_are_right(unit: Path, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd here")
    program = Path(sys.executable).with_name("torchyard")
    text = unit.read_text(encoding="utf-8")
    copy = tmp_path / unit.name
    copy.write_text(text.replace("/usr/local/bin/torchyard", str(program)), encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", copy], check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    (verb,) = re.findall(r"^ExecStart=.* farm (\w+) ", text, re.MULTILINE)
    argv = [sys.executable, "-m", "torchyard", "farm", verb, "--help"]
    told = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    options = re.findall(r" (--[a-z-]+)", text)
    assert options
    assert all(option in told for option in options)
