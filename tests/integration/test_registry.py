"""Roots are images of a registry: locked by digest, pulled once; the registry is not trusted."""

import json
import os
import shutil
import tarfile
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from tests.support.helpers import CORE, WORKS, Command, make_project
from tests.support.made_tar import member, tar_of
from tests.support.registries import (
    LOGIN,
    PASSWORD,
    Registry,
    call_skopeo,
    make_image,
    make_whole_layout,
    needs_registry,
    running_registry,
    set_up_client,
    write_login,
)
from tests.support.roots import make_small_root
from tests.support.services import LOOPBACK
from tests.unit.test_root_image import files_in

from torchyard.errors import ElsewhereError, HostError, PlanError, TorchyardError
from torchyard.host.bubblewrap import can_confine
from torchyard.toolchain import registry as registry_module
from torchyard.toolchain.registry import find_digest
from torchyard.toolchain.root_image import ROOTS, find_root

pytestmark = [pytest.mark.integration, needs_registry]

LAYER = tar_of((member("usr/a"), b"first"))


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    with running_registry(tmp_path / "registry") as running:
        set_up_client(tmp_path / "home", monkeypatch, running.address)
        yield running


@pytest.fixture
def closed_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    """A registry that wants a password, with an image; the user is not logged in."""
    with running_registry(tmp_path / "registry", password=True) as running:
        set_up_client(tmp_path / "home", monkeypatch, running.address)
        write_login(tmp_path / "home/.docker/config.json", running.address)
        push(running, tmp_path / "image", LAYER)
        (tmp_path / "home/.docker/config.json").unlink()
        yield running


def push(registry: Registry, layout: Path, *layers: bytes) -> str:
    return registry.push(make_whole_layout(layout, make_image(layout, *layers)), "team/base:1")


def pull(image: str, folder: Path, digest: str = "") -> str:
    return find_root(f"docker://{image}@{digest or find_digest(image)}", folder, folder / "work")


def left_over(folder: Path) -> list[str]:
    """Return what is in the directory of roots, besides locks."""
    return sorted(one.name for one in (folder / "work" / ROOTS).iterdir() if one.suffix != ".lock")


@pytest.mark.skipif(not can_confine(), reason="bubblewrap does not work here")
def test_a_job_runs_in_the_image_that_was_locked(
    registry: Registry, tmp_path: Path, torchyard: Command
) -> None:
    """The tag is moved to another image afterwards, and the registry is not asked again."""
    with tarfile.open(tmp_path / "root.tar", "w") as tar:
        tar.add(make_small_root(tmp_path / "root"), ".")
    image = push(registry, tmp_path / "image", (tmp_path / "root.tar").read_bytes())
    text = WORKS.replace("cat {source}/*.txt", "cat /usr/only-here.txt")
    file = make_project(tmp_path / "project", text)
    file.write_text(f'{text}[root]\nimage = "{image}"\n', encoding="utf-8")
    refused = torchyard("plan", "-f", file)
    assert refused.code == PlanError.exit_code
    assert "run `torchyard lock`" in refused.err
    locked = torchyard("lock", "-f", file)
    assert locked.code == 0, locked.err
    digest = find_digest(image)
    lock = file.with_suffix(".lock").read_text(encoding="utf-8")
    assert f'[images]\n"{image}" = "{digest}"\n' in lock
    push(registry, tmp_path / "other", LAYER)
    assert find_digest(image) != digest
    done = torchyard("build", CORE, "-f", file)
    assert done.code == 0, done.err
    assert left_over(file.parent / ".torchyard") == [digest.removeprefix("sha256:")]
    shutil.rmtree(registry.folder / "data")
    (result,) = json.loads(torchyard("store", "show", CORE, "-f", file, "--json").out)["results"]
    assert "core.bin" in str(result)


def test_an_image_for_several_machines_is_locked_once(registry: Registry, tmp_path: Path) -> None:
    layout = tmp_path / "image"
    other = tar_of((member("usr/other"), b""))
    images = make_image(layout, LAYER), make_image(layout, other, machine="riscv64")
    image = registry.push(make_whole_layout(layout, *images), "team/base")
    digest = find_digest(image)
    assert digest not in {str(one["digest"]) for one in images}
    assert files_in(pull(image, tmp_path)) == {"usr/a": "first"}
    assert left_over(tmp_path) == [digest.removeprefix("sha256:")]


def test_a_name_with_tag_and_digest_is_pulled(registry: Registry, tmp_path: Path) -> None:
    image = push(registry, tmp_path / "image", LAYER)
    assert image.endswith(":1")
    assert files_in(pull(image, tmp_path)) == {"usr/a": "first"}


def test_an_image_that_was_deleted_is_told(registry: Registry, tmp_path: Path) -> None:
    image = push(registry, tmp_path / "image", LAYER)
    digest = find_digest(image)
    call_skopeo("delete", f"docker://{image}")
    with pytest.raises(ElsewhereError, match=r"team/base:1@sha256.*can't be pulled: .*unknown"):
        pull(image, tmp_path, digest)
    with pytest.raises(ElsewhereError, match="manifest unknown"):
        find_digest(image)


# ------------------------------------------------------------------------------- credentials


def test_a_closed_registry_asks_for_a_login(closed_registry: Registry, tmp_path: Path) -> None:
    image = f"{closed_registry.address}/team/base:1"
    with pytest.raises(HostError) as refused:
        find_digest(image)
    assert f"docker login {closed_registry.address}" in str(refused.value.diagnostics[0].hint)
    write_login(tmp_path / "home/.docker/config.json", "other.example.org")
    with pytest.raises(HostError, match="unauthorized"):
        find_digest(image)


@pytest.mark.parametrize("path", [".docker/config.json", "run/containers/auth.json"])
def test_logins_of_docker_and_podman_are_used(
    closed_registry: Registry, path: str, tmp_path: Path
) -> None:
    write_login(tmp_path / "home" / path, closed_registry.address)
    image = f"{closed_registry.address}/team/base:1"
    assert files_in(pull(image, tmp_path)) == {"usr/a": "first"}


def test_a_credential_helper_is_asked(
    closed_registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"credHelpers": {closed_registry.address: "vault"}}
    (tmp_path / "home/.docker/config.json").write_text(json.dumps(settings), encoding="utf-8")
    helper = tmp_path / "bin/docker-credential-vault"
    helper.parent.mkdir()
    answer = {"Username": "builder", "Secret": PASSWORD}
    helper.write_text(f"#!/bin/sh\necho '{json.dumps(answer)}'\n", encoding="utf-8")
    helper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{helper.parent}:{os.environ['PATH']}")
    image = f"{closed_registry.address}/team/base:1"
    assert files_in(pull(image, tmp_path)) == {"usr/a": "first"}


# ---------------------------------------------------------------- the registry is an attacker


def test_a_layer_with_other_bytes_is_refused(registry: Registry, tmp_path: Path) -> None:
    image = push(registry, tmp_path / "image", LAYER)
    digest = find_digest(image)
    manifest = json.loads(call_skopeo("inspect", "--raw", f"docker://{image}"))
    blob = registry.blob(manifest["layers"][0]["digest"])
    blob.write_bytes(blob.read_bytes()[:-1] + b"!")
    with pytest.raises(ElsewhereError, match="can't be pulled"):
        pull(image, tmp_path, digest)
    assert left_over(tmp_path) == []


def test_a_manifest_with_other_bytes_is_refused(registry: Registry, tmp_path: Path) -> None:
    image = push(registry, tmp_path / "image", LAYER)
    digest = find_digest(image)
    blob = registry.blob(digest)
    blob.write_bytes(blob.read_bytes().replace(b'"config"', b'  "config"'))
    with pytest.raises(TorchyardError, match="can't be pulled"):
        pull(image, tmp_path, digest)
    assert left_over(tmp_path) == []


class EvilRegistry(ThreadingHTTPServer):
    """A fake: serves the image of a layout to those who log in, and does evil to its layer."""

    def __init__(self, blobs: Path, layer: str) -> None:
        super().__init__((LOOPBACK, 0), _Handler)
        self.blobs = blobs
        self.layer = layer
        self.sent: list[tuple[str, str]] = []
        """The host and the credentials of each request."""
        self.elsewhere = ""
        """A second host, to which requests for the layer are redirected."""
        self.says = ""
        """What it answers to those who log in."""

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        evil, login = self.server, self.headers.get("Authorization", "")
        assert isinstance(evil, EvilRegistry)
        evil.sent.append((self.headers["Host"], login))
        name = self.path.rpartition("/")[2].removeprefix("sha256:")
        if self.path.startswith("/elsewhere/"):
            self.answer(200, (evil.blobs / name).read_bytes())
        elif not login:
            self.answer(401, b"", ("WWW-Authenticate", "Basic realm=x"))
        elif evil.says:
            self.answer(403, evil.says.replace("{login}", login).encode())
        elif name == evil.layer and evil.elsewhere:
            self.answer(307, b"", ("Location", f"http://{evil.elsewhere}/elsewhere/{name}"))
        elif name == evil.layer:
            self.flood()
        else:
            kind = "application/vnd.oci.image.manifest.v1+json"
            self.answer(200, (evil.blobs / name).read_bytes(), ("Content-Type", kind))

    def answer(self, status: int, body: bytes, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for header in (*headers, ("Content-Length", str(len(body)))):
            self.send_header(*header)
        self.end_headers()
        self.wfile.write(body)

    def flood(self) -> None:
        """Send bytes that never end."""
        self.send_response(200)
        self.end_headers()
        try:
            while True:
                self.wfile.write(bytes(1 << 16))
        except OSError:  # the other side had enough
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def evil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EvilRegistry]:
    layout = tmp_path / "image"
    make_whole_layout(layout, make_image(layout, LAYER))
    with EvilRegistry(layout / "blobs/sha256", sha256(LAYER).hexdigest()) as running:
        thread = Thread(target=running.serve_forever, args=(0.05,))
        thread.start()
        set_up_client(tmp_path / "home", monkeypatch, running.address)
        write_login(tmp_path / "home/.docker/config.json", running.address)
        yield running
        running.shutdown()
        thread.join()


def pull_evil(evil: EvilRegistry, folder: Path) -> str:
    (index,) = json.loads((folder / "image/index.json").read_text())["manifests"]
    return pull(f"{evil.address}/team/base", folder, index["digest"])


def test_credentials_are_not_sent_where_a_registry_redirects_to(
    evil: EvilRegistry, tmp_path: Path
) -> None:
    evil.elsewhere = evil.address.replace(LOOPBACK, "localhost")
    assert files_in(pull_evil(evil, tmp_path)) == {"usr/a": "first"}
    assert (evil.address, f"Basic {LOGIN}") in evil.sent
    assert {login for host, login in evil.sent if host == evil.elsewhere} == {""}


def test_a_layer_that_never_ends_is_not_read_further(
    evil: EvilRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry_module, "_BOUNDED", ("prlimit", "--fsize=1000000"))
    with pytest.raises(TorchyardError, match="file too large"):
        pull_evil(evil, tmp_path)
    assert left_over(tmp_path) == []


@pytest.mark.parametrize("text", ["you are {login}", "http://a:{login}@example.org/ denies it"])
def test_what_a_registry_says_shows_no_credentials(
    evil: EvilRegistry, tmp_path: Path, text: str
) -> None:
    evil.says = json.dumps({"errors": [{"code": "DENIED", "message": text}]})
    with pytest.raises(TorchyardError, match="denied") as refused:
        pull_evil(evil, tmp_path)
    shown = str(refused.value)
    assert LOGIN not in shown
    assert PASSWORD not in shown
