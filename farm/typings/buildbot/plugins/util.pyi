from buildbot.config.builder import BuilderConfig as BuilderConfig
from buildbot.process.factory import BuildFactory as BuildFactory

class Interpolate:
    def __init__(self, fmtstring: str) -> None: ...
