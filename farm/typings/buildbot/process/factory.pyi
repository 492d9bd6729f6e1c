from collections.abc import Callable, Sequence

from buildbot.process.build import Build
from buildbot.process.buildstep import BuildStep

class BuildFactory:
    buildClass: Callable[..., Build]
    def __init__(self, steps: Sequence[BuildStep]) -> None: ...
