from buildbot.worker import AbstractWorker

class AbstractWorkerForBuilder:
    worker: AbstractWorker | None
