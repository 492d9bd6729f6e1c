"""Walls that companies build around their machines, of real parts, and what is behind each.

An index with stand-ins for torch and real build tools is served by HTTP or TLS, with or without a
password; tinyproxy leads to it; bubblewrap takes the network away; mounts are read-only or noexec;
libfaketime turns the clock.
"""

import base64
import datetime as dt
import functools
import hashlib
import ipaddress
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tests.mutations.zstd import decompress
from tests.support.helpers import ROOT
from tests.support.made_wheel import make_wheel
from tests.support.services import LOOPBACK, reserved_port

PROJECTS = ROOT / "tests/projects"
USER, PASSWORD = "alice", "S3cret/pa:ss+wörd"
LOGIN = f"{USER}:{quote(PASSWORD, safe='')}"
PROXY_PASSWORD = "Pr0xy-S3cret"
"""tinyproxy takes letters, digits and a few signs only."""
PROXY_LOGIN = f"{USER}:{PROXY_PASSWORD}"
_PROXY_ADDRESS = "127.0.0.3"
"""The address that the proxy connects from: behind some walls, the index answers no other one."""
_CLEAN = re.compile(r"(PIP|UV|AWS)_\w+|(?i:\w+_proxy)|SSL_CERT_\w+|\w+_CA_BUNDLE|NETRC|GIT_SSL\w+")
_DAY = dt.timedelta(days=1)


# ------------------------------------------------------------------------------- parts


class Authority(NamedTuple):
    """A certificate authority of one's own, and a server's certificate from it."""

    bundle: Path
    certificate: Path

    @classmethod
    def make(cls, folder: Path) -> "Authority":
        folder.mkdir(parents=True, exist_ok=True)
        own, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "the company's own")])
        host = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "index")])
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        root = _signed(name, name, own.public_key(), own, constraints, _SIGNS)
        addresses = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(LOOPBACK))])
        leaf = _signed(host, name, key.public_key(), own, addresses)
        made = cls(folder / "authority.pem", folder / "index.pem")
        made.bundle.write_bytes(root.public_bytes(Encoding.PEM))
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        made.certificate.write_bytes(leaf.public_bytes(Encoding.PEM) + private)
        return made


def _signed(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    by: ec.EllipticCurvePrivateKey,
    *extensions: x509.ExtensionType,
) -> x509.Certificate:
    now = dt.datetime.now(dt.UTC)
    builder = x509.CertificateBuilder(issuer, subject, key, x509.random_serial_number())
    builder = builder.not_valid_before(now - 30 * _DAY).not_valid_after(now + 300 * _DAY)
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    usage = x509.AuthorityKeyIdentifier.from_issuer_public_key(by.public_key())
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    return builder.add_extension(usage, critical=False).sign(by, hashes.SHA256())


_SIGNS = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)
"""What an authority's key is for; Python 3.13 and newer want it said."""


class _Handler(SimpleHTTPRequestHandler):
    server: "IndexServer"  # type: ignore[mutable-override] # it is made by one

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
        pass

    def do_GET(self) -> None:
        if self._may():
            super().do_GET()

    def do_HEAD(self) -> None:
        if self._may():
            super().do_HEAD()

    def _may(self) -> bool:
        self.server.asked.append(self.path)
        expected = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if self.server.login and self.headers.get("Authorization", "") != f"Basic {expected}":
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="index"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return False
        return True


class IndexServer(ThreadingHTTPServer):
    """Serves an index, to one address only if `only` is set."""

    daemon_threads = True

    def __init__(self, root: Path, *, login: bool, tls: Path | None, only: str = "") -> None:
        super().__init__((LOOPBACK, 0), functools.partial(_Handler, directory=str(root)))
        self.login, self.only = login, only
        self.asked: list[str] = []
        self.scheme = "https" if tls else "http"
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls)
            self.socket = context.wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )

    def verify_request(self, request: object, client_address: object) -> bool:
        assert isinstance(client_address, tuple)
        return not self.only or client_address[0] == self.only

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: clients that distrust the certificate go."""

    def url(self, login: str = "") -> str:
        at = f"{login}@" if login else ""
        return f"{self.scheme}://{at}{LOOPBACK}:{self.server_port}/simple"


@contextmanager
def serving(server: IndexServer) -> Iterator[IndexServer]:
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def forward_proxy(folder: Path, *, password: bool) -> Iterator[int]:
    """Run tinyproxy, and yield its port."""
    program = shutil.which("tinyproxy")
    assert program, "install the package `tinyproxy`"
    folder.mkdir(parents=True, exist_ok=True)
    with reserved_port() as port:
        lines = [f"Port {port}", f"Listen {LOOPBACK}", f"Bind {_PROXY_ADDRESS}", "Timeout 60"]
        lines += [f"BasicAuth {USER} {PROXY_PASSWORD}"] if password else []
        config = folder / "tinyproxy.conf"
        config.write_text("\n".join(lines) + "\n", encoding="utf-8")
        log = (folder / "tinyproxy.log").open("wb")
        with log, subprocess.Popen([program, "-d", "-c", config], stdout=log, stderr=log) as child:
            try:
                _wait_for(port, child)
                yield port
            finally:
                child.terminate()


def _wait_for(port: int, child: subprocess.Popen[bytes]) -> None:
    while child.poll() is None:
        with suppress(OSError):
            socket.create_connection((LOOPBACK, port), timeout=1).close()
            return
        time.sleep(0.02)
    msg = f"the proxy ended with exit code {child.returncode}"
    raise AssertionError(msg)


def make_index(root: Path, wheels: Sequence[Path]) -> None:
    """Write the pages of a simple index, with its files beside them."""
    (root / "files").mkdir(parents=True)
    pages: dict[str, list[str]] = {}
    for wheel in wheels:
        shutil.copy(wheel, root / "files")
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        name = re.sub(r"[-_.]+", "-", wheel.name.partition("-")[0]).lower()
        link = f'<a href="../../files/{quote(wheel.name)}#sha256={digest}">{wheel.name}</a><br>'
        pages.setdefault(name, []).append(link)
    for name, links in pages.items():
        (root / "simple" / name).mkdir(parents=True)
        (root / "simple" / name / "index.html").write_text("\n".join(links), encoding="utf-8")
    listed = "".join(f'<a href="{name}/">{name}</a>' for name in pages)
    (root / "simple/index.html").write_text(listed, encoding="utf-8")


def make_torch(folder: Path) -> Path:
    """Make a wheel that stands for torch, with a library to link to."""
    source = PROJECTS / "standintorch"
    text = (source / "torch/__init__.py").read_text("utf-8")
    wheel = make_wheel(folder, "torch", "2.13.99+cpu", text=text)
    library = folder / "libc10.so"
    subprocess.run(["gcc", "-shared", "-x", "c", "/dev/null", "-o", library], check=True)
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.write(library, "torch/lib/libc10.so")
        for path in sorted((source / "torch").rglob("*.*")):
            if path.name != "__init__.py" or path.parent.name != "torch":
                archive.write(path, path.relative_to(source))
    return wheel


# ------------------------------------------------------------------------------- walls


@dataclass
class Lab:
    """What walls are made of: an index in a directory, an authority, and what to close."""

    folder: Path
    index: Path
    authority: Authority
    stack: ExitStack

    def serve(self, *, login: bool = False, tls: bool = False, only: str = "") -> IndexServer:
        certificate = self.authority.certificate if tls else None
        server = IndexServer(self.index, login=login, tls=certificate, only=only)
        return self.stack.enter_context(serving(server))

    def proxy(self, *, password: bool = False) -> int:
        return self.stack.enter_context(forward_proxy(self.folder / "proxy", password=password))


@dataclass
class Behind:
    """A machine behind a wall: its settings, as files of the home directory and variables."""

    index: str
    """The address of the index, without a password; empty if there is none."""
    env: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()
    """What the command is started by."""
    folder: str = "behind"
    """The name of the directory that is worked in."""


class Wall(NamedTuple):
    """A wall, what `doctor` says behind it, and the name of the fault if nothing can pass."""

    about: str
    make: Callable[[Lab], Behind]
    says: str
    stops: str = ""


PIP, UV = ".config/pip/pip.conf", ".config/uv/uv.toml"


def _proxied(lab: Lab, *, password: bool = False, login: str = "", tls: bool = False) -> Behind:
    server = lab.serve(only=_PROXY_ADDRESS, tls=tls)
    at = f"{login}@" if login else ""
    proxy = f"http://{at}{LOOPBACK}:{lab.proxy(password=password)}"
    env = {"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "UV_DEFAULT_INDEX": server.url()}
    return Behind(server.url(), env)


def _proxy_in_pip_conf(lab: Lab) -> Behind:
    server, port = lab.serve(only=_PROXY_ADDRESS), lab.proxy(password=True)
    text = f"[global]\nindex-url = {server.url()}\nproxy = {PROXY_LOGIN}@{LOOPBACK}:{port}\n"
    return Behind(server.url(), files={PIP: text})


def _dead_proxy(lab: Lab, no_proxy: str = "") -> Behind:
    server = lab.serve()
    with reserved_port() as port:
        dead = f"http://{LOOPBACK}:{port}"
    env = {"HTTP_PROXY": dead, "HTTPS_PROXY": dead, "UV_DEFAULT_INDEX": server.url()}
    return Behind(server.url(), env | ({"NO_PROXY": no_proxy} if no_proxy else {}))


def _intercepted(lab: Lab) -> Behind:
    behind = _proxied(lab, password=True, login=PROXY_LOGIN, tls=True)
    behind.env["SSL_CERT_FILE"] = str(lab.authority.bundle)
    return behind


def _trusting(lab: Lab, variable: str = "", *, in_file: bool = False) -> Behind:
    url = lab.serve(tls=True).url()
    cert = f"cert = {lab.authority.bundle}\n" if in_file else ""
    env = {variable: str(lab.authority.bundle)} if variable else {}
    return Behind(url, env, {PIP: f"[global]\nindex-url = {url}\n{cert}"})


def _in_system_store(lab: Lab) -> Behind:
    behind = _trusting(lab)
    store = "/etc/ssl/certs/ca-certificates.crt"
    bundle = lab.folder / "with-system.crt"
    bundle.write_bytes(Path(store).read_bytes() + lab.authority.bundle.read_bytes())
    bind = ("--ro-bind", str(bundle), store)
    return Behind(behind.index, files=behind.files, before=("bwrap", "--dev-bind", "/", "/", *bind))


def _login_in(lab: Lab, name: str) -> Behind:
    server = lab.serve(login=True)
    url = server.url()
    user_only = f"[global]\nindex-url = {server.url(USER)}\nkeyring-provider = subprocess\n"
    keyring = lab.folder / "bin/keyring"
    ways = {
        "pip.conf": Behind(url, files={PIP: f"[global]\nindex-url = {server.url(LOGIN)}\n"}),
        "uv.toml": Behind(
            url, files={UV: f'[[index]]\nurl = "{server.url(LOGIN)}"\ndefault = true\n'}
        ),
        "variables": Behind(
            url,
            {"UV_INDEX_CORP_USERNAME": USER, "UV_INDEX_CORP_PASSWORD": PASSWORD},
            {UV: f'[[index]]\nname = "corp"\nurl = "{url}"\ndefault = true\n'},
        ),
        "netrc": Behind(
            url,
            {"PIP_INDEX_URL": url},
            {".netrc": f"machine {LOOPBACK} login {USER} password {PASSWORD}\n"},
        ),
        "keyring": Behind(
            url, {"PATH": f"{lab.folder}/bin:{os.environ['PATH']}"}, {PIP: user_only}
        ),
        "nothing": Behind(url, {"PIP_INDEX_URL": url}),
    }
    keyring.parent.mkdir(exist_ok=True)
    keyring.write_text(f'#!/bin/sh\n[ "$2 $3" = "{url} {USER}" ] && cat "$0.secret"\n', "utf-8")
    keyring.chmod(0o755)
    keyring.with_suffix(".secret").write_text(PASSWORD, encoding="utf-8")
    return ways[name]


_CUT = ("bwrap", "--dev-bind", "/", "/", "--unshare-net")


def _cut_off(lab: Lab, *, links: bool) -> Behind:
    text = f"[global]\nno-index = true\nfind-links = {(lab.index / 'files').as_uri()}\n"
    return Behind("", files={PIP: text} if links else {}, before=_CUT)


def _plain(lab: Lab, *before: str, folder: str = "behind", tls: bool = False) -> Behind:
    server = lab.serve(tls=tls)
    trust = {"SSL_CERT_FILE": str(lab.authority.bundle)} if tls else {}
    return Behind(server.url(), {"UV_DEFAULT_INDEX": server.url(), **trust}, {}, before, folder)


def _mounted(lab: Lab, variable: str, script: str) -> Behind:
    """Run in a mount namespace, where a script changes the directory that a variable names."""
    text = f'{script.replace("DIR", f"${variable}")} && exec "$@"'
    return _plain(lab, "unshare", "--mount", "--propagation=private", "sh", "-c", text, "sh")


LONG = "Größe mit Leerzeichen, " * 8
WALLS = {
    "proxy": Wall("a proxy", _proxied, "answers through the proxy"),
    "proxy-password": Wall(
        "a proxy with a password",
        lambda lab: _proxied(lab, password=True, login=PROXY_LOGIN),
        "answers through the proxy",
    ),
    "proxy-pip-conf": Wall(
        "a proxy with a password, in pip.conf", _proxy_in_pip_conf, "answers through the proxy"
    ),
    "proxy-refuses": Wall(
        "a proxy whose password is missing",
        lambda lab: _proxied(lab, password=True),
        "the proxy requires another user name or password",
        stops="proxy-password",
    ),
    "proxy-down": Wall("a proxy that is down", _dead_proxy, "through the proxy", stops="proxy"),
    "no-proxy": Wall(
        "a proxy for the outside, and an index inside (NO_PROXY)",
        lambda lab: _dead_proxy(lab, LOOPBACK),
        "answers",
    ),
    "intercepting-proxy": Wall(
        "a proxy with a password, and TLS by the company's authority",
        _intercepted,
        "answers through the proxy",
    ),
    "authority-ssl": Wall(
        "an authority in SSL_CERT_FILE", lambda lab: _trusting(lab, "SSL_CERT_FILE"), "answers"
    ),
    "authority-requests": Wall(
        "an authority in REQUESTS_CA_BUNDLE",
        lambda lab: _trusting(lab, "REQUESTS_CA_BUNDLE"),
        "answers",
    ),
    "authority-pip": Wall(
        "an authority in PIP_CERT", lambda lab: _trusting(lab, "PIP_CERT"), "answers"
    ),
    "authority-pip-conf": Wall(
        "an authority in pip.conf", lambda lab: _trusting(lab, in_file=True), "answers"
    ),
    "authority-system": Wall("an authority in the system's store", _in_system_store, "answers"),
    "authority-unknown": Wall(
        "an authority that the machine does not know",
        _trusting,
        "certificate verify failed",
        stops="authority",
    ),
    "password-pip-conf": Wall(
        "a password in pip.conf", lambda lab: _login_in(lab, "pip.conf"), "answers"
    ),
    "password-uv-toml": Wall(
        "a password in uv.toml", lambda lab: _login_in(lab, "uv.toml"), "answers"
    ),
    "password-variables": Wall(
        "a password in UV_INDEX_NAME_PASSWORD", lambda lab: _login_in(lab, "variables"), "answers"
    ),
    "password-netrc": Wall("a password in netrc", lambda lab: _login_in(lab, "netrc"), "answers"),
    "password-keyring": Wall(
        "a password in a keyring", lambda lab: _login_in(lab, "keyring"), "answers"
    ),
    "password-missing": Wall(
        "an index whose password is missing",
        lambda lab: _login_in(lab, "nothing"),
        "its server requires another user name or password",
        stops="password",
    ),
    "no-network": Wall(
        "no network, and a directory of wheels",
        lambda lab: _cut_off(lab, links=True),
        "no index is asked, but file:///",
    ),
    "no-network-no-wheels": Wall(
        "no network, and nothing instead",
        lambda lab: _cut_off(lab, links=False),
        "could not be read",
        stops="name",
    ),
    "read-only-home": Wall(
        "a home directory that can't be written to",
        lambda lab: _mounted(lab, "HOME", "mount --bind DIR DIR && mount -o remount,ro,bind DIR"),
        "the home directory can't be written to",
    ),
    "noexec": Wall(
        "a temporary directory with noexec",
        lambda lab: _mounted(lab, "TMPDIR", "mount -t tmpfs -o noexec none DIR"),
        "mounted with `noexec`",
    ),
    "long-path": Wall(
        "a long path with spaces and umlauts",
        lambda lab: _plain(lab, folder=LONG.strip()),
        "answers",
    ),
    "clock-behind": Wall(
        "a clock that is years behind, and TLS",
        lambda lab: _plain(lab, "faketime", "2019-01-01", tls=True),
        "this machine's clock says 2019-",
        stops="clock",
    ),
    "clock-ahead": Wall(
        "a clock that is years ahead, and mtimes in its past",
        lambda lab: _plain(lab, "faketime", "2041-01-01"),
        "this machine's clock says 2041-",
    ),
    "clock-behind-no-tls": Wall(
        "a clock that is years behind: all files are of the future",
        lambda lab: _plain(lab, "faketime", "2019-01-01"),
        "this machine's clock says 2019-",
    ),
}


# ------------------------------------------------------------------------------- machines


class Done(NamedTuple):
    """How a command ended."""

    code: int
    said: str
    seconds: float


class Machine:
    """Runs commands behind a wall, and looks at every process meanwhile for the password."""

    def __init__(self, behind: Behind, folder: Path) -> None:
        self.folder, self.index = folder / behind.folder, behind.index
        self.home, tmp = folder / "home", folder / "tmp"
        for path in (self.folder, self.home, tmp, self.home / ".cache"):
            path.mkdir(parents=True, exist_ok=True)
        self.settings = [self.home / name for name in behind.files]
        for name, text in behind.files.items():
            (self.home / name).parent.mkdir(parents=True, exist_ok=True)
            (self.home / name).write_text(text, encoding="utf-8")
            (self.home / name).chmod(0o600)
        clean = {name: text for name, text in os.environ.items() if not _CLEAN.fullmatch(name)}
        own = {"HOME": str(self.home), "TMPDIR": str(tmp), "COLUMNS": "300", "NO_COLOR": "1"}
        beside = f"{Path(sys.executable).parent}:{behind.env.get('PATH') or os.environ['PATH']}"
        self.env = {**clean, **own, **behind.env, "PATH": beside}
        if (Path.home() / ".pyenv").is_dir():
            self.env["PYENV_ROOT"] = str(Path.home() / ".pyenv")
        self._before = behind.before
        self.watch = ProcessWatch()

    def run(self, *words: object, cwd: Path | None = None) -> Done:
        argv = [*self._before, sys.executable, "-m", "torchyard", *map(str, words)]
        began = time.monotonic()
        with self.watch:
            done = subprocess.run(
                argv,
                cwd=cwd or self.folder,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
        return Done(done.returncode, done.stdout, time.monotonic() - began)

    def leaks(self) -> list[str]:
        """Return the files written here that have the password, but the settings themselves."""
        top = self.home.parent
        found = []
        for path in top.rglob("*"):
            if path.is_file() and not path.is_symlink() and path not in self.settings:
                found += [str(path)] if has_secret(path.read_bytes()) else []
        return found


SPELLINGS = [
    spelling.encode()
    for password in (PASSWORD, PROXY_PASSWORD)
    for spelling in (
        password,
        quote(password, safe=""),
        quote(password),
        base64.b64encode(f"{USER}:{password}".encode()).decode(),
        password.encode("unicode_escape").decode(),
    )
]


def has_secret(data: bytes) -> bool:
    """Return whether bytes have the password, however it is spelt, also compressed by zstd."""
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        data = decompress(data)
    return any(spelling in data for spelling in SPELLINGS)


class ProcessWatch:
    """Looks for passwords in arguments and variables of this process' children, again and again."""

    def __init__(self) -> None:
        self.arguments: set[str] = set()
        """Commands with the password."""
        self.variables: set[str] = set()
        """Commands whose environment has it."""
        self.looks = 0
        self._stop = threading.Event()

    def __enter__(self) -> None:
        self._stop.clear()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.02):
            self.looks += 1
            for process in _descendants(os.getpid()):
                self._look(Path("/proc", str(process)))

    def _look(self, process: Path) -> None:
        with suppress(OSError):
            line = (process / "cmdline").read_bytes()
            shown = line.replace(b"\0", b" ").decode(errors="replace")[:200]
            if has_secret(line):
                self.arguments.add(shown)
            if has_secret((process / "environ").read_bytes()):
                self.variables.add(shown)


def _descendants(ancestor: int) -> list[int]:
    """Return the processes that a process has started, and those that these have."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
            parents[int(path.parent.name)] = int(fields[1])
    found = {ancestor}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found - {ancestor})
