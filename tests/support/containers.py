"""Containers whose file system is this machine's own, under a layer that is thrown away.

So they have the same compilers, Pythons and torchyard as the machine, at the same paths.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import pytest

_PATH = f"{os.environ['PATH']}:/usr/sbin"
needs_podman = pytest.mark.skipif(
    os.geteuid() != 0 or not all(shutil.which(name, path=_PATH) for name in ("podman", "runc")),
    reason="needs root, podman and runc",
)

_NAMESPACES = (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)
_NO_ERROR, _NO_PERMISSION, _NO_CALL = "SCMP_ACT_ALLOW", 1, 38
DOCKER = {
    "defaultAction": _NO_ERROR,
    "syscalls": [
        {
            "names": ["unshare", "mount", "umount2", "setns", "pivot_root", "open_tree"],
            "action": "SCMP_ACT_ERRNO",
            "errnoRet": _NO_PERMISSION,
        },
        {
            "names": ["move_mount", "fsopen", "fsmount", "fsconfig", "keyctl", "add_key"],
            "action": "SCMP_ACT_ERRNO",
            "errnoRet": _NO_PERMISSION,
        },
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": _NO_CALL},
        *(
            {
                "names": ["clone"],
                "action": "SCMP_ACT_ERRNO",
                "errnoRet": _NO_PERMISSION,
                "args": [{"index": 0, "value": f, "valueTwo": f, "op": "SCMP_CMP_MASKED_EQ"}],
            }
            for f in _NAMESPACES
        ),
    ],
}
"""What docker's default profile refuses to a container without rights, as far as it matters."""

_USUAL = (
    *("--runtime", "runc", "--cgroup-manager", "cgroupfs", "--network", "host"),
    *("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000", "--env-host"),
)
STRANGER = 54321
"""A user whom no machine has a name for."""

POD = (
    *("--cap-drop", "all", "--security-opt", "no-new-privileges"),
    *("--read-only", "--read-only-tmpfs=false", "--user", f"{STRANGER}:0"),
)
"""A pod that is restricted as Kubernetes can; docker's profile comes on top."""


def container(volume: Path, *options: str, name: str = "", root: str = "/") -> list[str]:
    """Return the command that runs another one in a container, which can write to a directory."""
    called = ("--name", name) if name else ("--rm",)
    words = ["podman", "run", *called, *_USUAL, "--volume", f"{volume}:{volume}"]
    return [*words, "--workdir", str(volume), *options, "--rootfs", f"{root}:O"]


def as_in_docker(folder: Path) -> tuple[str, str]:
    """Return the options of a container with docker's profile, which is written to a folder."""
    file = folder / "docker.json"
    file.write_text(json.dumps(DOCKER), encoding="utf-8")
    return "--security-opt", f"seccomp={file}"


@contextmanager
def open_folder() -> Iterator[Path]:
    """Make a folder that all users can enter: those of pytest are for its own user."""
    with TemporaryDirectory(prefix="yard-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


class RunningContainer:
    """A container that runs while the test looks on; its files stay when it is killed."""

    def __init__(self, volume: Path, options: Sequence[str], argv: Sequence[str]) -> None:
        self.name = f"torchyard-{uuid4().hex}"
        words = [*container(volume, *options, name=self.name), *argv]
        self._process = subprocess.Popen(words, cwd=volume)  # podman leaves a file `oom` there

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def kill(self) -> None:
        subprocess.run(["podman", "kill", self.name], check=True, capture_output=True)

    def end(self) -> int:
        """Wait for its end, remove it, and return its exit code."""
        code = self._process.wait()
        subprocess.run(["podman", "rm", "-f", self.name], check=False, capture_output=True)
        return code
