"""What a channel says of itself, wherever its files can be read: its head, and states of parts."""

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
    """Where the files of a channel are."""

    @property
    def url(self) -> str: ...

    def read(self, key: str) -> bytes | None:
        """Read a file whole; None if there is none."""


class ChannelReader:
    """A channel as all see it who can read its files."""

    def __init__(self, source: FileSource) -> None:
        self._source = source
        self._states: dict[str, State] = {}

    @property
    def url(self) -> str:
        return self._source.url

    def read(self, key: str) -> bytes | None:
        """Read a file of the channel; None if there is none."""
        return self._source.read(key)

    def head(self) -> Head:
        """The head as it is now."""
        data = self._source.read(HEAD)
        return Head() if data is None else self._decoded(data)

    def _decoded(self, data: bytes) -> Head:
        try:
            return _HEAD.decode(data)
        except UNDECODABLE as error:
            msg = f"`{HEAD}` of the channel `{self.url}` can't be read: {error}"
            raise StoreError(msg, hint=self._hint(error)) from error

    def _hint(self, error: Exception) -> str:
        """Return what to do about an object that can't be decoded."""
        if isinstance(error, msgspec.ValidationError):  # JSON, but of other fields
            return "was it written by a newer torchyard?"
        return f"`torchyard channel restore {self.url}` restores what is left"

    def state(self, head: Head, part: str) -> State:
        """The state of a part; one without files if there is no such part."""
        known = head.parts.get(part)
        return State() if known is None else self.state_at(known.state)

    def state_at(self, digest: str) -> State:
        """A state, new or old; nothing for no digest."""
        if not digest:
            return State()
        if digest not in self._states:
            data = self._source.read(state_key(digest))
            if data is None:
                msg = f"the channel `{self.url}` has lost the state {digest}"
                hint = (
                    f"try again: was it pruned meanwhile? else bring `{state_key(digest)}` back "
                    f"from a copy, or `torchyard channel restore {self.url}`"
                )
                raise StoreError(msg, hint=hint)
            self._states = {digest: self._read_state(digest, data)}  # one: a state can be large
        return self._states[digest]

    def _read_state(self, digest: str, data: bytes) -> State:
        if sha256(data).hexdigest() != digest:
            msg = f"the state {digest} of `{self.url}` is not what its name says"
            hint = (
                f"bring `{state_key(digest)}` back from a copy; or `torchyard channel restore "
                f"{self.url}` shows an earlier state"
            )
            raise StoreError(msg, hint=hint)
        try:
            return _STATE.decode(decompress_text(data))
        except (*UNDECODABLE, ZstdError) as error:
            msg = f"the state {digest} of `{self.url}` can't be read: {error}"
            raise StoreError(msg, hint=self._hint(error)) from error
