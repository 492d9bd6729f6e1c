"""Which of several masters a machine works for, and that it never stops searching."""

from types import SimpleNamespace

from buildbot_worker.bot import Worker
from twisted.application.service import MultiService, Service
from twisted.internet import defer
from twisted.internet.task import Clock

from farm.tests.stand_ins import stands_in
from torchyard_farm.twisted_tools import start_loop
from torchyard_farm.worker.failover import MasterFailover
from torchyard_farm.worker.keepalive import keep_alive


class StandInAgent(Service):
    """Stand-in for Buildbot's worker: connected when a test says so."""

    def __init__(self, master: str) -> None:
        self.master = master
        self.bf = SimpleNamespace(perspective=None)

    def connect(self) -> None:
        self.bf.perspective = SimpleNamespace(broker=SimpleNamespace(disconnected=False))

    def disconnect(self) -> None:
        self.bf.perspective.broker.disconnected = True


def start() -> tuple[Clock, MasterFailover[str]]:
    clock = Clock()
    machine = MasterFailover(
        clock, ["one", "two"], lambda name: [StandInAgent(name) for _ in range(3)]
    )
    machine.startService()
    return clock, machine


def agents(machine: MasterFailover[str]) -> list[StandInAgent]:
    return [one for one in machine if isinstance(one, StandInAgent) and one.running]


def masters(machine: MasterFailover[str]) -> set[str]:
    return {one.master for one in agents(machine)}


def pass_time(clock: Clock, seconds: int) -> None:
    clock.pump([1] * seconds)


def test_all_agents_go_to_the_next_master_together() -> None:
    clock, machine = start()
    assert masters(machine) == {"one"}
    pass_time(clock, 25)
    assert masters(machine) == {"two"}
    assert len(agents(machine)) == 3
    pass_time(clock, 25)
    assert masters(machine) == {"one"}


def test_a_machine_stays_as_long_as_one_agent_is_connected() -> None:
    clock, machine = start()
    one, *_ = agents(machine)
    one.connect()
    pass_time(clock, 300)
    assert masters(machine) == {"one"}
    one.disconnect()
    pass_time(clock, 15)  # it may come back
    assert masters(machine) == {"one"}
    pass_time(clock, 10)
    assert masters(machine) == {"two"}


def test_a_machine_that_slept_looks_for_its_master_first() -> None:
    """As when it is suspended, or overloaded."""
    clock, machine = start()
    clock.advance(300)
    assert masters(machine) == {"one"}
    agents(machine)[0].connect()
    pass_time(clock, 30)
    assert masters(machine) == {"one"}


def test_a_machine_with_one_master_waits_for_it() -> None:
    clock = Clock()
    machine = MasterFailover(clock, ["one"], lambda name: [StandInAgent(name)])
    machine.startService()
    (before,) = agents(machine)
    pass_time(clock, 300)
    assert agents(machine) == [before]


def test_a_machine_that_is_stopped_stays_so() -> None:
    clock, machine = start()
    machine.stopService()
    pass_time(clock, 60)
    assert agents(machine) == []


class HangingAgent(StandInAgent):
    """A worker whose connection does not end, or ends with an error."""

    def stopService(self) -> defer.Deferred[None]:  # noqa: N802 - Twisted's
        self.running = False
        return defer.fail(OSError("no")) if self.master == "two" else defer.Deferred()


def test_agents_that_do_not_end_well_keep_a_machine_from_nothing() -> None:
    clock = Clock()
    machine = MasterFailover(
        clock, ["one", "two"], lambda name: [HangingAgent(name) for _ in range(3)]
    )
    machine.startService()
    seen = [masters(machine)]
    for _ in range(3):
        pass_time(clock, 30)
        seen.append(masters(machine))
    assert seen == [{"one"}, {"two"}, {"one"}, {"two"}]


def test_nothing_looks_after_an_agent_that_has_ended() -> None:
    clock = Clock()

    class Agent(MultiService):
        bf = SimpleNamespace(perspective=None)

    def make(_: str) -> list[Agent]:
        agent = Agent()  # type: ignore[no-untyped-call]
        keep_alive(stands_in(Worker, agent), clock)
        return [agent]

    machine = MasterFailover(clock, ["one", "two"], make)
    machine.startService()
    before = len(clock.getDelayedCalls())
    pass_time(clock, 300)
    assert len(clock.getDelayedCalls()) == before


def test_a_loop_goes_on_when_what_it_does_fails() -> None:
    clock = Clock()
    done: list[float] = []

    def do() -> None:
        done.append(clock.seconds())
        raise OSError

    loop = start_loop(do, 1, clock, now=True)
    pass_time(clock, 3)
    assert done == [0, 1, 2, 3]
    loop.stop()
