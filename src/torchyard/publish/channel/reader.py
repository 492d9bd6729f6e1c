"""Read a channel's head and states from any source of files."""

from hashlib import sha256
from typing import Protocol

import msgspec

from torchyard.errors import StoreError
from torchyard.host.zstd import ZstdError, decompress_text
from torchyard.index.entry import State
from torchyard.model.values import UNDECODABLE
from torchyard.publish.channel.head import HEAD, Head, state_key

_HEAD = msgspec.json.Decoder(Head)
_STATE = msgspec.json.Decoder(State)


class FileSource(Protocol):
    """A source of a channel's files."""

    @property
    def url(self) -> str: ...

    def read(self, key: str) -> bytes | None:
        """Return the bytes of a file, or None if it does not exist."""


class ChannelReader:
    """A read-only channel."""

    def __init__(self, source: FileSource) -> None:
        self._source = source
        self._states: dict[str, State] = {}

    @property
    def url(self) -> str:
        return self._source.url

    def read(self, key: str) -> bytes | None:
        """Return the bytes of a file of the channel, or None if it does not exist."""
        return self._source.read(key)

    def head(self) -> Head:
        """Return the current head."""
        data = self._source.read(HEAD)
        return Head() if data is None else self._decoded(data)

    def _decoded(self, data: bytes) -> Head:
        try:
            return _HEAD.decode(data)
        except UNDECODABLE as error:
            msg = f"`{HEAD}` of the channel `{self.url}` can't be read: {error}"
            raise StoreError(msg, hint=self._hint(error)) from error

    def _hint(self, error: Exception) -> str:
        """Return a fix for an object that can't be decoded."""
        if isinstance(error, msgspec.ValidationError):  # JSON with other fields
            return "it may be from a newer torchyard: upgrade"
        return f"`torchyard channel restore {self.url}` restores the rest"

    def state(self, head: Head, part: str) -> State:
        """Return the state of a part; without files if there is no such part."""
        known = head.parts.get(part)
        return State() if known is None else self.state_at(known.state)

    def state_at(self, digest: str) -> State:
        """Return a current or old state by its digest; an empty one without a digest."""
        if not digest:
            return State()
        if digest not in self._states:
            data = self._source.read(state_key(digest))
            if data is None:
                msg = f"the channel `{self.url}` has lost the state {digest}"
                hint = (
                    f"try again, as it may be just pruned; else restore `{state_key(digest)}` "
                    f"from a backup, or `torchyard channel restore {self.url}`"
                )
                raise StoreError(msg, hint=hint)
            self._states = {digest: self._read_state(digest, data)}  # only one: states can be large
        return self._states[digest]

    def _read_state(self, digest: str, data: bytes) -> State:
        if sha256(data).hexdigest() != digest:
            msg = f"the state {digest} of `{self.url}` does not match its name"
            hint = (
                f"restore `{state_key(digest)}` from a backup;  or `torchyard channel restore "
                f"{self.url}` shows an earlier state"
            )
            raise StoreError(msg, hint=hint)
        try:
            return _STATE.decode(decompress_text(data))
        except (*UNDECODABLE, ZstdError) as error:
            msg = f"the state {digest} of `{self.url}` can't be read: {error}"
            raise StoreError(msg, hint=self._hint(error)) from error
