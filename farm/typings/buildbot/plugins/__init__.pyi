from buildbot.plugins import steps as steps
from buildbot.plugins import util as util
from buildbot.plugins import worker as worker
