"""Make keys, and say in the trust file whose count."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from torchyard.errors import SelectionError, UsageError
from torchyard.model.recipe import Stage
from torchyard.model.suggest import did_you_mean
from torchyard.store.makers import (
    TRUST,
    Maker,
    Revocation,
    add_to_trust,
    load_signer,
    load_trust,
    make_key,
)
from torchyard.workspace.progress import ignore_line


def new_key(path: str) -> str:
    """Write a private key to a new file, and return its public key."""
    return make_key(Path(path))


def trust_maker(
    name: str,
    key: str | None = None,
    *,
    stages: Sequence[str] = (),
    on_line: Callable[[str], None] = ignore_line,
) -> None:
    """Add a maker to the trust file.

    Args:
        name: The maker's name in messages.
        key: Its public key; by default this machine's.
        stages: The stages whose results count; by default all.
        on_line: Called with what was done.
    """
    known = [stage.value for stage in Stage]
    for stage in stages:
        if stage not in known:
            msg = f"there is no stage `{stage}`"
            raise UsageError(msg, hint=did_you_mean(stage, known))
    signer = None if key else load_signer()
    if not key and not signer:
        msg = "which key? This machine has none"
        raise UsageError(msg, hint="`torchyard store key FILE` makes one, and prints it")
    path = _trust_file()
    maker = Maker(
        name=name,
        key=key or (signer.key if signer else ""),
        stages=tuple(map(Stage, stages or known)),
    )
    add_to_trust(path, maker)
    on_line(f"{path}: {name} is trusted for {', '.join(maker.stages)}")


def revoke_key(key: str, *, reason: str, on_line: Callable[[str], None] = ignore_line) -> None:
    """Revoke a key in the trust file.

    Args:
        key: The public key, as in the file.
        reason: Why, as messages show it.
        on_line: Called with what was done.
    """
    path = _trust_file()
    trust = load_trust(str(path)) if path.exists() else None
    name = trust.name_of(key) if trust else ""
    if not name:
        msg = f"`{path}` has no maker with the key `{key}`"
        raise SelectionError(msg, hint="copy the key from the file")
    add_to_trust(path, Revocation(key=key, reason=reason))
    on_line(f"{path}: the key of {name} is revoked; `torchyard store verify` lists its results")


def _trust_file() -> Path:
    path = os.environ.get(TRUST)
    if not path:
        msg = f"{TRUST} is not set"
        raise UsageError(msg, hint="set it to the path of the trust file, which may be new")
    return Path(path)
