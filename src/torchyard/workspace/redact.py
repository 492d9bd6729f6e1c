"""Events without the caller's secrets."""

from collections.abc import Callable

from torchyard.host.secrets import redact
from torchyard.model.event import AnyEvent, decode_event, encode_event


def redacting(on_event: Callable[[AnyEvent], None]) -> Callable[[AnyEvent], None]:
    """Wrap a listener so that events are redacted first."""

    def on_raw_event(event: AnyEvent) -> None:
        on_event(decode_event(redact(encode_event(event).decode()).encode()))

    return on_raw_event
