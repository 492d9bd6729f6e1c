"""The directory of a master: what `farm init` writes into it."""

import json
import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from importlib.resources import files
from pathlib import Path

from torchyard.errors import HostError
from torchyard.host.ports import bind_error
from torchyard.host.process import capture, own_program
from torchyard_farm.settings.farm import FILE, SECRETS, Farm, load_farm
from torchyard_farm.settings.tls import ensure_certificate

_WRITTEN = ("buildbot.tac", "master.cfg")
_OTHERS = 0o077

_TEXT = """\
# The farm: where its master listens, and which machines work for it.
# It is read when the master starts: torchyard farm stop, and start.

file = {file}  # the project that is built
database = {database}
listen = "127.0.0.1:9989"  # for workers; all else than this machine's own is encrypted
# names = ["farm.example.org"]  # under which workers look for it
web = "127.0.0.1:8010"  # for people: a proxy with TLS belongs in front of it
# url = "https://farm.example.org/"  # where that is
heartbeat = "20 s"  # how often each worker is asked for a sign of life
patience = "40 s"  # and how long it has to give one
attempts = 3  # of a job whose failures are not its own fault
pause = "15 s"  # before the second of them, and twice as long before each further one
keep = "90 d"  # how long jobs of plans that are over are remembered, with their logs
"""

_WORKER = """
[worker.w{number}]
platform = "{platform}"
memory = "16 GB"
disk = "100 GB"
copies = "20 GB"  # what may stay of the store, beside what is booked
slots = 1  # jobs at one time
# capabilities = ["cuda"]  # what jobs may ask for in `needs`
# publish = true  # only publishes, and is the only one that may
"""


def farm_text(file: str, database: str, platforms: Iterable[str]) -> str:
    """A `farm.toml` to begin with: a machine for each platform of the project."""
    workers = (
        _WORKER.format(number=number, platform=platform)
        for number, platform in enumerate(platforms, 1)
    )
    head = _TEXT.format(file=_quoted(file), database=_quoted(database))
    return head + "".join(workers)


def _quoted(text: str) -> str:
    """A text as TOML writes it, which is as JSON does."""
    return json.dumps(text, ensure_ascii=False)


def make_master(folder: Path, text: str, now: datetime) -> Farm:
    """Write what is missing in a master's directory."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_mode & _OTHERS:
        msg = (
            f"others can read `{folder}`, where passwords will be, and the key that signs sessions"
        )
        raise HostError(msg, hint=f"chmod 700 {folder}; or name a directory that is not there yet")
    if not (folder / FILE).exists():
        (folder / FILE).write_text(text, encoding="utf-8")
    farm = load_farm(folder)
    for name in _WRITTEN:
        data = files("torchyard_farm").joinpath("data", name).read_bytes()
        (folder / name).write_bytes(data)
    make_secrets(folder, farm)
    ensure_certificate(folder, farm, now)
    return farm


def make_secrets(folder: Path, farm: Farm) -> None:
    """Make a password for everybody who has none yet; only the master's user can read them.

    A file with nothing in it is none: everybody would know that password.
    """
    place = folder / SECRETS
    place.mkdir(mode=0o700, exist_ok=True)
    for name in (*farm.users, *(machine.name for machine in farm.machines)):
        if not ((place / name).exists() and read_secret(folder, name)):
            part = place / f".{name}"  # no name begins so
            part.touch(mode=0o600)
            part.write_text(f"{secrets.token_urlsafe(24)}\n", encoding="utf-8")
            part.replace(place / name)


def find_running_master(folder: Path) -> int | None:
    """The process of the master in a directory, if one runs.

    The number that one has left which was killed is forgotten, since any other process may have
    it by now: Buildbot would not start for its sake, and stop it in place of a master.
    """
    path = folder / "twistd.pid"
    text = path.read_text(encoding="ascii").strip() if path.exists() else ""
    if text.isdecimal() and int(text) != os.getpid():
        with suppress(OSError):  # it is gone, or somebody else's
            if Path(f"/proc/{text}/cwd").samefile(folder):
                return int(text)
    path.unlink(missing_ok=True)
    return None


def refuse_running(folder: Path) -> None:
    """Refuse to start a master twice."""
    process = find_running_master(folder)
    if process is not None:
        msg = f"the master in `{folder}` runs already: process {process}"
        raise HostError(
            msg, hint=f"to let it read {FILE} again: torchyard farm stop {folder}, and start"
        )


def refuse_occupied(farm: Farm) -> None:
    """Refuse to start a master where it could not listen."""
    for key, address in (("listen", farm.listen), ("web", farm.web)):
        why = bind_error(address.host, address.port)
        if why is not None:
            msg = f"the master can't listen at {address.host}:{address.port}: {why}"
            raise HostError(msg, hint=f"end what listens there, or change `{key}` in {FILE}")


def run_buildbot(folder: Path, *words: str) -> str:
    """Let Buildbot do something with the master in a directory."""
    try:
        return capture([own_program("buildbot"), *words, "."], cwd=folder).strip()
    except HostError as error:
        msg = f"`buildbot {words[0]}` failed for the master in `{folder}`"
        hint = f"why is near the end of {folder / 'twistd.log'}"
        raise HostError(msg, hint=hint) from error


def read_secret(folder: Path, name: str) -> str:
    return (folder / SECRETS / name).read_text(encoding="utf-8").strip()
