from buildbot.worker import LocalWorker as LocalWorker
from buildbot.worker import Worker as Worker
