"""Keys of makers, and the trust files that name them."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from torchyard.model.recipe import Stage
from torchyard.store.makers import KEY, TRUST, Signer, Trust, load_signer, load_trust, make_key


class Makers:
    """Makers with a key each, and the trust file of this machine, in a directory."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.trust_file = folder / "trust.toml"
        self._folder = folder
        self._patch = monkeypatch
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, name: str, stages: Iterable[Stage] = Stage) -> str:
        """Make a key, and trust it for stages; return the public key."""
        key = make_key(self._folder / name)
        words = ", ".join(f'"{stage}"' for stage in stages)
        self._append(f'[[maker]]\nname = "{name}"\nkey = "{key}"\nstages = [{words}]\n')
        self._patch.setenv(TRUST, str(self.trust_file))
        return key

    def revoke(self, key: str) -> None:
        self._append(f'[[revoked]]\nkey = "{key}"\nreason = "the disk was stolen"\n')

    def be(self, name: str) -> None:
        """Make this machine a maker."""
        self._patch.setenv(KEY, str(self._folder / name))

    def signer(self, name: str) -> Signer:
        self.be(name)
        signer = load_signer()
        assert signer
        return signer

    def trust(self) -> Trust:
        trust = load_trust(str(self.trust_file))
        assert trust
        return trust

    def _append(self, text: str) -> None:
        with self.trust_file.open("a", encoding="utf-8") as file:
            file.write(text)
