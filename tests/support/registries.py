"""A registry for container images, Debian's docker-registry, and images that are pushed to it."""

import base64
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.services import LOOPBACK, reserved_port
from tests.unit.test_root_image import OURS, finish, put

USER, PASSWORD = "builder", "not-for-logs-7f3a"
LOGIN = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()

needs_registry = pytest.mark.skipif(
    not all(map(shutil.which, ("docker-registry", "skopeo", "prlimit"))),
    reason="docker-registry and skopeo are not both installed",
)

_HASHED = "builder:$2y$05$wim0aBeOaJu9BanQvkAVX.r81luR6rgMVE1CIA9Iv..5IshGkDsH."
"""What `htpasswd -B` makes of both."""
_CONFIG = """\
version: 0.1
log: {{level: error}}
storage: {{filesystem: {{rootdirectory: {folder}/data}}, delete: {{enabled: true}}}}
http: {{addr: "{address}"}}
"""
_OCI = "application/vnd.oci.image"


class Registry(NamedTuple):
    """A registry that runs, and the directory that it keeps its blobs in."""

    address: str
    folder: Path

    def blob(self, digest: str) -> Path:
        """Return the file of a blob."""
        name = digest.removeprefix("sha256:")
        return self.folder / f"data/docker/registry/v2/blobs/sha256/{name[:2]}/{name}/data"

    def push(self, layout: Path, name: str) -> str:
        """Push all images of a layout under one name; return its address."""
        image = f"{self.address}/{name}"
        call_skopeo("copy", "--all", f"oci:{layout}", f"docker://{image}")
        return image


def call_skopeo(*words: str) -> str:
    done = subprocess.run(["skopeo", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def running_registry(folder: Path, *, password: bool = False) -> Iterator[Registry]:
    """Run a registry on loopback, which wants a user and a password, or none."""
    folder.mkdir(parents=True, exist_ok=True)
    with reserved_port() as port:
        address = f"{LOOPBACK}:{port}"
        text = _CONFIG.format(folder=folder, address=address)
        if password:
            (folder / "users").write_text(f"{_HASHED}\n", encoding="utf-8")
            text += f"auth: {{htpasswd: {{realm: test, path: {folder}/users}}}}\n"
        (folder / "config.yml").write_text(text, encoding="utf-8")
        with (folder / "log").open("wb") as log:
            argv = ["docker-registry", "serve", str(folder / "config.yml")]
            served = subprocess.Popen(argv, stdout=log, stderr=log)
        try:
            wait_for(port, served)
            yield Registry(address, folder)
        finally:
            served.kill()
            served.wait()


def wait_for(port: int, served: subprocess.Popen[bytes]) -> None:
    """Wait until a server takes connections."""
    while served.poll() is None:
        try:
            socket.create_connection((LOOPBACK, port), 1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    pytest.fail("the registry did not start")


def set_up_client(home: Path, monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Make a home whose user reaches registries without TLS."""
    folder = home / ".config/containers"
    folder.mkdir(parents=True, exist_ok=True)
    rows = [f'[[registry]]\nlocation = "{one}"\ninsecure = true\n' for one in addresses]
    (folder / "registries.conf").write_text("\n".join(rows), encoding="utf-8")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home / "run"))
    for name in ("REGISTRY_AUTH_FILE", "DOCKER_CONFIG", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)


def write_login(path: Path, address: str) -> None:
    """Write user and password as `docker login` and `podman login` do."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"auths": {address: {"auth": LOGIN}}}), encoding="utf-8")


def make_image(layout: Path, *layers: bytes, machine: str = OURS) -> dict[str, object]:
    """Add a whole image to a layout, with its configuration; return its descriptor."""
    kind = f"{_OCI}.layer.v1.tar"
    described = [describe(layout, layer, kind) for layer in layers]
    config = {
        "architecture": machine,
        "os": "linux",
        "config": {},
        "rootfs": {"type": "layers", "diff_ids": [one["digest"] for one in described]},
    }
    about = describe(layout, json.dumps(config).encode(), f"{_OCI}.config.v1+json")
    manifest = {"schemaVersion": 2, "mediaType": f"{_OCI}.manifest.v1+json"}
    text = json.dumps({**manifest, "config": about, "layers": described})
    made = describe(layout, text.encode(), f"{_OCI}.manifest.v1+json")
    return {**made, "platform": {"architecture": machine, "os": "linux"}}


def describe(layout: Path, data: bytes, kind: str) -> dict[str, object]:
    return {"mediaType": kind, "digest": put(layout, data), "size": len(data)}


def make_whole_layout(layout: Path, *images: dict[str, object]) -> Path:
    """Finish a layout with one name, for one image or an index of several."""
    if len(images) == 1:
        return finish(layout, images[0])
    kind = f"{_OCI}.index.v1+json"
    text = json.dumps({"schemaVersion": 2, "mediaType": kind, "manifests": images})
    return finish(layout, describe(layout, text.encode(), kind))
