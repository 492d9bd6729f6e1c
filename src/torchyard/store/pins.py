"""Pins: named results that garbage collection keeps."""

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from torchyard.errors import SelectionError, StoreError, UsageError
from torchyard.model.identifier import fits_identifier
from torchyard.model.quantity import show_count
from torchyard.model.suggest import did_you_mean
from torchyard.model.values import UNDECODABLE, Value
from torchyard.store.gc_lease import GcWatch
from torchyard.store.keys import PINS, key_name, pin_key
from torchyard.store.store import Store


class StorePin(Value, kw_only=True):
    """The fingerprints that a pin keeps."""

    version: Literal[1] = 1
    results: tuple[str, ...]


def add_pin(store: Store, name: str, results: Iterable[str]) -> StorePin:
    """Keep results under a new name.

    Wait for the end of a running collection, which may have missed the pin.
    """
    if not fits_identifier(name):
        msg = f"`{name}` is not a valid name of a pin"
        raise UsageError(msg, hint="use letters, digits, _ . and -")
    watch = GcWatch(store.objects)
    made = StorePin(results=tuple(sorted(results)))
    is_new = store.objects.create(pin_key(name), msgspec.json.encode(made))
    store.objects.sync()
    if not is_new:
        msg = f"the pin `{name}` exists already"
        raise UsageError(
            msg, hint=f"choose another name, or `torchyard store pin {name} --remove` first"
        )
    gone: set[str] = set()
    watch.settle(lambda: gone.update(set(made.results) - store.known(made.results)))
    if gone:
        store.objects.delete([pin_key(name)])
        lost = show_count(len(gone), "result")
        msg = f"a garbage collection has just removed {lost} of those to be kept"
        raise StoreError(msg, hint="choose again from the remaining results")
    return made


def remove_pin(store: Store, name: str) -> None:
    if store.objects.head(pin_key(name)) is None:
        msg = f"there is no pin `{name}`"
        raise SelectionError(msg, hint=did_you_mean(name, [pin for pin, _ in list_pins(store)]))
    store.objects.delete([pin_key(name)])


def list_pins(store: Store) -> Iterator[tuple[str, StorePin]]:
    for meta in store.objects.list(PINS):
        data = store.objects.read(meta.key)
        if data is not None:
            try:
                yield key_name(meta.key), msgspec.json.decode(data, type=StorePin)
            except UNDECODABLE as error:
                msg = f"the pin `{key_name(meta.key)}` can't be read: {error}"
                raise StoreError(msg, hint="remove the pin, or write it again") from error


def pinned_fingerprints(store: Store) -> set[str]:
    """Return every fingerprint that a pin keeps."""
    return {name for _, kept in list_pins(store) for name in kept.results}
