"""Workers whose connection was lost before it was all made, or with its master.

Buildbot is not told of its end then: the worker seems to be there for ever, and in the first case
cannot connect again, as it seems to be there.
"""

from typing import Any

import sqlalchemy as sa
from twisted.python import log


def forget_connections(connection: Any, model: Any, masters: sa.Select[Any]) -> None:
    """Forget which workers were connected to some masters, when these were killed."""
    known = model.connected_workers
    connection.execute(known.delete().where(known.c.masterid.in_(masters)))


def drop_half_open(manager: Any) -> None:
    """Let go of connections that are gone, and end those that came when the worker seemed there."""
    for name, connection in list(manager.connections.items()):
        worker = manager.workers.get(name)
        if worker is not None and worker.conn is not connection and connection.mind is not None:
            log.msg(f"worker {name} is connected, but nobody talks to it: it has to connect anew")
            connection.mind.broker.transport.abortConnection()
    for worker in list(manager.workers.values()):
        mind = getattr(worker.conn, "mind", None)
        if mind is not None and mind.broker.disconnected:
            log.msg(f"worker {worker.name} was lost while it connected")
            worker.conn.detached(mind)
