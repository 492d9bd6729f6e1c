"""The directory of a master, written by `farm init`."""

import json
import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from importlib.resources import files
from pathlib import Path

from torchyard.errors import HostError
from torchyard.host.own_files import SECRET, make_own_directory, stamp_directory
from torchyard.host.ports import bind_error
from torchyard.host.process import capture, own_program
from torchyard_farm.settings.farm import FILE, SECRETS, Farm, load_farm
from torchyard_farm.settings.tls import ensure_certificate

_WRITTEN = ("buildbot.tac", "master.cfg")
_OTHERS = 0o077

_TEXT = """\
# The farm: where its master listens, and its machines.
# It is read when the master starts: torchyard farm stop, and start.

file = {file}  # the project that is built
database = {database}
listen = "127.0.0.1:9989"  # for workers; encrypted unless it is a loopback address
# names = ["farm.example.org"]  # by which workers reach it
web = "127.0.0.1:8010"  # the web page; put a proxy with TLS in front of it
# url = "https://farm.example.org/"  # the address of that proxy
heartbeat = "20 s"  # interval between two status polls of each worker
patience = "40 s"  # time limit for the answer
attempts = 3  # for a job whose failures are not its own fault
pause = "15 s"  # before the second attempt; it doubles with each further one
keep = "90 d"  # how long jobs of ended plans are kept, with their logs
"""

_WORKER = """
[worker.w{number}]
platform = "{platform}"
memory = "16 GB"
disk = "100 GB"
copies = "20 GB"  # size of its local cache of the store, in addition to `disk`
slots = 1  # concurrent jobs
# capabilities = ["cuda"]  # what jobs may require in `needs`
# publish = true  # runs publish jobs only, which other machines never run
"""


def farm_text(file: str, database: str, platforms: Iterable[str]) -> str:
    """Return an initial `farm.toml`, with a machine for each platform of the project."""
    workers = (
        _WORKER.format(number=number, platform=platform)
        for number, platform in enumerate(platforms, 1)
    )
    head = _TEXT.format(file=_quoted(file), database=_quoted(database))
    return head + "".join(workers)


def _quoted(text: str) -> str:
    """Return a string in the syntax of TOML, which is that of JSON."""
    return json.dumps(text, ensure_ascii=False)


def make_master(folder: Path, text: str, now: datetime) -> Farm:
    """Write the missing files of a master's directory."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_mode & _OTHERS:
        msg = f"other users can read `{folder}`, which will contain passwords and the session key"
        raise HostError(
            msg, hint=f"chmod 700 {folder}; or choose a directory that does not exist yet"
        )
    if (folder / FILE).exists():
        stamp_directory(folder)
    else:
        make_own_directory(folder)
        (folder / FILE).write_text(text, encoding="utf-8")
    farm = load_farm(folder)
    (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    for name in _WRITTEN:
        data = files("torchyard_farm").joinpath("data", name).read_bytes()
        (folder / name).write_bytes(data)
    make_secrets(folder, farm)
    ensure_certificate(folder, farm, now)
    return farm


def make_secrets(folder: Path, farm: Farm) -> None:
    """Generate missing passwords of users and machines; only the master's user can read them.

    An empty file counts as missing: anyone could guess that password.
    """
    secrets_folder = folder / SECRETS
    secrets_folder.mkdir(mode=0o700, exist_ok=True)
    for name in (*farm.users, *(machine.name for machine in farm.machines)):
        if not ((secrets_folder / name).exists() and read_secret(folder, name)):
            part = secrets_folder / f".{name}"  # no name begins with a dot
            part.touch(mode=0o600)
            part.write_text(f"{SECRET}{secrets.token_urlsafe(24)}\n", encoding="utf-8")
            part.replace(secrets_folder / name)


def find_running_master(folder: Path) -> int | None:
    """Return the process of the running master in a directory, or None.

    The PID file of a killed master is deleted, since another process may have its number by now:
    Buildbot would refuse to start, and stop that process instead of the master.
    """
    path = folder / "twistd.pid"
    text = path.read_text(encoding="ascii").strip() if path.exists() else ""
    if text.isdecimal() and int(text) != os.getpid():
        with suppress(OSError):  # it is gone, or belongs to another user
            if Path(f"/proc/{text}/cwd").samefile(folder):
                return int(text)
    path.unlink(missing_ok=True)
    return None


def refuse_running(folder: Path) -> None:
    """Refuse to start a master twice."""
    process = find_running_master(folder)
    if process is not None:
        msg = f"the master in `{folder}` is running already: process {process}"
        raise HostError(
            msg, hint=f"to make it read {FILE} again: torchyard farm stop {folder}, and start"
        )


def refuse_occupied(farm: Farm) -> None:
    """Refuse to start a master whose addresses can't be bound."""
    for key, address in (("listen", farm.listen), ("web", farm.web)):
        why = bind_error(address.host, address.port)
        if why is not None:
            msg = f"the master can't listen at {address.host}:{address.port}: {why}"
            raise HostError(msg, hint=f"stop what listens there, or change `{key}` in {FILE}")


def run_buildbot(folder: Path, *words: str) -> str:
    """Run a command of Buildbot on the master in a directory."""
    try:
        return capture([own_program("buildbot"), *words, "."], cwd=folder).strip()
    except HostError as error:
        cause = str(error).rstrip().rpartition("\n")[2]
        msg = f"`buildbot {words[0]}` failed for the master in `{folder}`: {cause}"
        hint = f"see the end of {folder / 'twistd.log'}"
        raise HostError(msg, hint=hint) from error


def read_secret(folder: Path, name: str) -> str:
    return (folder / SECRETS / name).read_text(encoding="utf-8").strip()
