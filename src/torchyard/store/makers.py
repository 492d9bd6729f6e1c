"""The Ed25519 keys of makers: this machine's own, and those that it trusts, for which stages.

Variables name both files, not a project's file: who submits a project has no say in whom the
machine trusts.
"""

import os
import stat
from base64 import b64decode, b64encode
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from torchyard.errors import UsageError
from torchyard.host.entry_points import require_module
from torchyard.host.own_files import SECRET
from torchyard.model.config import SandboxDemand
from torchyard.model.recipe import Stage
from torchyard.model.values import Value

if TYPE_CHECKING:  # an optional extra
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

KEY = "TORCHYARD_KEY"
"""The variable with the path of this machine's private key; no log contains the key itself."""

TRUST = "TORCHYARD_TRUST"
"""The variable with the path of the file that says whom this machine trusts."""

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class Signer(NamedTuple):
    """A private key, and its public key as trust files name it."""

    private: "Ed25519PrivateKey"
    key: str

    def sign(self, kind: str, data: bytes) -> str:
        return b64encode(self.private.sign(_message(kind, data))).decode()


class Maker(Value, kw_only=True):
    """A trusted key: whose it is, and the stages whose results count with its signature."""

    name: str
    key: str
    stages: tuple[Stage, ...]


class Revocation(Value, kw_only=True):
    """A key whose signatures no longer count, also earlier ones."""

    key: str
    reason: str


class Requirements(Value, kw_only=True):
    """What the statement of a package must say, besides who made it."""

    source: tuple[str, ...] = ()
    """Globs, one of which matches the source's address; by default, any source will do."""
    sandbox: SandboxDemand = "any"
    """Whether the package and its inputs must be built from scratch in a sandbox."""


class Trust(Value, kw_only=True):
    """A trust file. A maker who changes keys has several; commands only append to the file."""

    maker: tuple[Maker, ...] = ()
    revoked: tuple[Revocation, ...] = ()
    require: Requirements = Requirements()

    def name_of(self, key: str) -> str:
        """Return the name of a key's maker; empty if unknown."""
        return next((maker.name for maker in self.maker if maker.key == key), "")

    def revocation(self, key: str) -> str | None:
        """Return why a key was revoked, or None."""
        reasons = (revoked.reason for revoked in self.revoked if revoked.key == key)
        return next((f"the key `{key}` was revoked: {reason}" for reason in reasons), None)

    def distrust(self, key: str, stage: Stage) -> str | None:
        """Return why a key's signatures do not count for a stage, or None."""
        if not key:
            return "it is not signed"
        if why := self.revocation(key):
            return why
        if not (name := self.name_of(key)):
            return f"it is signed with an unknown key, `{key}`"
        stages = {stage for maker in self.maker if maker.key == key for stage in maker.stages}
        return None if stage in stages else f"its maker {name} is not trusted for `{stage}`"


def load_signer() -> Signer | None:
    """Return this machine's key, or None if the variable is not set."""
    path = os.environ.get(KEY)
    if not path:
        return None
    data = _read_own("private key", path, _OTHERS, "read")
    require_module("cryptography", "keys of makers", "cryptography")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415
        Ed25519PrivateKey,
    )
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415

    try:
        private = load_pem_private_key(data, None)
    except (ValueError, TypeError):  # the reason could show a part of the key
        private = None
    if not isinstance(private, Ed25519PrivateKey):
        msg = f"`{path}` is no private key (Ed25519, PEM, without a password)"
        raise UsageError(msg, hint=f"`torchyard store key {path}.new` makes one")
    return Signer(private, _public(private))


def load_trust(path: str | None = None) -> Trust | None:
    """Return the trust file at a path, by default the machine's, or None if there is none."""
    path = path or os.environ.get(TRUST)
    if not path:
        return None
    return _decode_trust(_read_own("trust file", path, _OTHERS_WRITE, "replaced"), path)


def add_to_trust(path: Path, entry: Maker | Revocation) -> None:
    """Append an entry to a trust file, which may be new; existing lines stay as they are."""
    table = "maker" if isinstance(entry, Maker) else "revoked"
    values = msgspec.to_builtins(entry).items()
    lines = [f"{name} = {msgspec.json.encode(value).decode()}\n" for name, value in values]
    text = f"\n[[{table}]]\n{''.join(lines)}"
    is_there = path.exists()
    there = _read_own("trust file", str(path), _OTHERS_WRITE, "replaced") if is_there else b""
    trust = _decode_trust(there + text.encode(), str(path))
    if isinstance(entry, Maker) and (why := trust.revocation(entry.key)):
        msg = f"{why}, so nothing that it signs would count"
        raise UsageError(msg, hint="`torchyard store key` makes a new one")
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)


def _decode_trust(data: bytes, path: str) -> Trust:
    try:
        trust = msgspec.toml.decode(data, type=Trust)
        for maker in trust.maker:
            _load_public(maker.key)
    except (ValueError, msgspec.MsgspecError) as error:
        msg = f"`{path}` is no trust file: {error}"
        raise UsageError(msg, hint="`torchyard store trust` writes entries") from error
    return trust


def make_key(path: Path) -> str:
    """Write a new private key, which only its user can read; return the public key."""
    require_module("cryptography", "keys of makers", "cryptography")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415
        Ed25519PrivateKey,
    )
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    private = Ed25519PrivateKey.generate()
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        msg = f"`{path}` can't be written: {error.strerror}"
        raise UsageError(msg, hint="name a new file") from error
    with os.fdopen(handle, "wb") as file:
        file.write(f"{SECRET}key\n".encode() + pem)
    return _public(private)


def verify_signature(key: str, kind: str, data: bytes, signature: str) -> bool:
    """Return whether a key of a trust file signed data of a kind."""
    public = _load_public(key)
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415

    try:
        public.verify(b64decode(signature, validate=True), _message(kind, data))
    except (InvalidSignature, ValueError):
        return False
    return True


def _load_public(key: str) -> "Ed25519PublicKey":
    """Return a public key; raise ValueError if it is none."""
    require_module("cryptography", "keys of makers", "cryptography")
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import load_der_public_key  # noqa: PLC0415

    try:
        public = load_der_public_key(b64decode(key, validate=True))
    except (ValueError, UnsupportedAlgorithm):
        public = None
    if not isinstance(public, Ed25519PublicKey):
        msg = f"`{key}` is no public key (Ed25519)"
        raise ValueError(msg)  # noqa: TRY004 - the text is wrong, not its type
    return public


def _message(kind: str, data: bytes) -> bytes:
    """Return what is signed, as DSSE defines it: a signature counts for one kind of data only."""
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind.encode(), len(data), data)


def _public(private: "Ed25519PrivateKey") -> str:
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
        Encoding,
        PublicFormat,
    )

    der = private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return b64encode(der).decode()


def _read_own(name: str, path: str, forbidden: int, what: str) -> bytes:
    """Read a file; refuse one with a mode that lets other users do `what`."""
    try:
        with Path(path).open("rb") as file:
            status = os.fstat(file.fileno())
            data = file.read()
    except OSError as error:
        msg = f"the {name} `{path}` can't be read: {error.strerror}"
        hint = f"{KEY} is the path of this machine's private key, {TRUST} that of its trust file"
        raise UsageError(msg, hint=hint) from error
    if status.st_mode & forbidden or status.st_uid not in (0, os.geteuid()):
        msg = f"the {name} `{path}` can be {what} by other users"
        raise UsageError(msg, hint=f"make a new one, and only yours: chmod 600 {path}")
    return data
