"""Where servers of this machine could listen."""

import errno
import os
import socket


def bind_error(host: str, port: int) -> str | None:
    """Why nobody can begin to listen at an address of this machine; None if somebody can."""
    try:
        family, kind, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as door:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            door.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return "another program listens there"
        return error.strerror or os.strerror(errno.EADDRNOTAVAIL)
    return None
