from buildbot.worker import AbstractWorker
from buildbot.worker.protocols.base import Connection

class WorkerManager:
    connections: dict[str, Connection]
    workers: dict[str, AbstractWorker]
