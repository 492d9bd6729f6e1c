"""Nothing that is told of jobs has a secret in it."""

from collections.abc import Callable

from torchyard.host.secrets import redact
from torchyard.model.event import AnyEvent, decode_event, encode_event


def redacting(listen: Callable[[AnyEvent], None]) -> Callable[[AnyEvent], None]:
    """Let somebody hear of events, without the caller's secrets."""

    def hear(event: AnyEvent) -> None:
        listen(decode_event(redact(encode_event(event).decode()).encode()))

    return hear
