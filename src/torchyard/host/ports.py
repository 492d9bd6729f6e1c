"""Addresses that a server on this machine can bind."""

import errno
import os
import socket


def bind_error(host: str, port: int) -> str | None:
    """Return why the address can't be bound, or None."""
    try:
        family, kind, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return "another program listens there"
        return error.strerror or os.strerror(errno.EADDRNOTAVAIL)
    return None
