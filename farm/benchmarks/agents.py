"""Workers for both sides: `agents.py farm|bare FOLDER HOST PORT NAME... < PASSWORD`."""

import sys
from pathlib import Path

from buildbot_worker.bot import Worker
from twisted.application.service import MultiService

from torchyard.model.recipe import Stage
from torchyard_farm.twisted_tools import global_reactor
from torchyard_farm.worker.commands import install_job_command


def main() -> None:
    side, folder, host, port, *names = sys.argv[1:]
    password = sys.stdin.read().strip()
    if side == "farm":
        install_job_command(tuple(Stage), {})
    agents = MultiService()
    for name in names:
        base = Path(folder, name)
        base.mkdir(parents=True)
        agent = Worker(host, int(port), name, password, str(base), keepalive=None)
        agent.setServiceParent(agents)
    reactor = global_reactor()
    reactor.callWhenRunning(agents.startService)
    reactor.run()


if __name__ == "__main__":
    main()
