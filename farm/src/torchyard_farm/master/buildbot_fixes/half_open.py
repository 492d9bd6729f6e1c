"""Half-open connections of workers.

Defect of Buildbot 4.3 (`worker/manager.py`, `worker/protocols/base.py`): a connection that is lost
before the worker is attached, or with its master, is never reported as lost. The worker stays
"connected" forever, and in the first case can't connect again.
"""

import sqlalchemy as sa
from buildbot.db.model import Model
from buildbot.worker.manager import WorkerManager
from twisted.python import log


def forget_connections(
    connection: sa.Connection, model: type[Model], masters: sa.Select[int]
) -> None:
    """Delete the records of workers connected to masters that were killed."""
    connections = model.connected_workers
    connection.execute(connections.delete().where(connections.c.masterid.in_(masters)))


def drop_half_open(manager: WorkerManager) -> None:
    """Detach lost connections, and abort connections without a worker."""
    for name, connection in list(manager.connections.items()):
        worker = manager.workers.get(name)
        if worker is not None and worker.conn is not connection and connection.mind is not None:
            log.msg(f"worker {name} is connected but not attached: it must connect again")
            connection.mind.broker.transport.abortConnection()
    for worker in list(manager.workers.values()):
        mind = getattr(worker.conn, "mind", None)  # connections of local workers have none
        if worker.conn is not None and mind is not None and mind.broker.disconnected:
            log.msg(f"worker {worker.name} was lost while it connected")
            worker.conn.detached(mind)
