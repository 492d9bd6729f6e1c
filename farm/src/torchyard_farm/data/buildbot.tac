"""Written by `torchyard farm init`; Buildbot's own commands read it."""

import os

from buildbot.master import BuildMaster
from twisted.application import service
from twisted.python.log import FileLogObserver, ILogObserver
from twisted.python.logfile import LogFile

basedir = os.path.dirname(os.path.abspath(__file__))
application = service.Application('buildmaster')  # Buildbot searches for this text
logfile = LogFile.fromFullPath(
    os.path.join(basedir, "twistd.log"), rotateLength=10_000_000, maxRotatedFiles=10
)
application.setComponent(ILogObserver, FileLogObserver(logfile).emit)
master = BuildMaster(basedir, "master.cfg")
master.setServiceParent(application)
