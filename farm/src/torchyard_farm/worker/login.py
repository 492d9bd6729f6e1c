"""Messages about logins: refused by the master, or to a master that can't be trusted."""

from buildbot_worker.pb import BotFactory
from OpenSSL import SSL
from service_identity import VerificationError
from twisted.cred.error import UnauthorizedLogin
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from twisted.spread import pb

from torchyard.errors import HostError
from torchyard.terminal.console import say
from torchyard_farm.twisted_tools import Reactor, RemoteBroker, RemoteObject

_PATIENCE = 20
"""Seconds after which a worker without a connection prints a message."""


class LoginMonitor:
    """Stops a worker process that is refused at its first login; retries after later refusals.

    A master restarted with a wrong file may be corrected while jobs run here.
    """

    def __init__(self, master: str, reactor: Reactor) -> None:
        self._master = master
        self._reactor = reactor
        self._error: HostError | None = None
        self._was_connected = False
        self._connected: set[str] = set()
        self._is_stopping = False

    def watch(self, name: str, factory: BotFactory) -> None:
        """Follow the logins of a worker."""
        accept, retry = factory.gotPerspective, factory.failedToGetPerspective

        def accepted(perspective: RemoteObject) -> None:
            self._connect(name)
            accept(perspective)

        def refused(why: Failure, broker: RemoteBroker) -> object:
            if why.check(UnauthorizedLogin):
                self._refuse(_refusal(name, self._master))
                if not self._was_connected:
                    return None
            elif not why.check(pb.PBConnectionLost):
                reason = why.getErrorMessage()
                say(f"the master at {self._master} can't accept `{name}` now: {reason}; retrying")
            return retry(why, broker)

        def lost(why: Failure) -> None:
            self._disconnect(name)
            error = _distrust(self._master, why)
            if error is not None:
                self._refuse(error)

        class Broker(pb.Broker):
            def connectionLost(self, reason: Failure = connectionDone) -> None:
                super().connectionLost(reason)
                lost(reason)

        factory.gotPerspective = accepted
        factory.failedToGetPerspective = refused
        factory.protocol = Broker

    def start(self) -> None:
        """Print a message if the first connection takes long."""
        self._reactor.callLater(_PATIENCE, self._say_waiting)
        self._reactor.addSystemEventTrigger("before", "shutdown", self._stop)

    def raise_error(self) -> None:
        """Raise the error that stopped the worker process, if there is one."""
        if self._error is not None:
            raise self._error

    def _connect(self, name: str) -> None:
        if not self._connected:
            say(f"working for the master at {self._master}; see worker.log")
        self._connected.add(name)
        self._was_connected = True

    def _disconnect(self, name: str) -> None:
        if self._connected == {name} and not self._is_stopping:
            say(f"the connection to the master at {self._master} was lost; jobs continue. Retrying")
        self._connected.discard(name)

    def _stop(self) -> None:
        self._is_stopping = True

    def _say_waiting(self) -> None:
        if not self._was_connected:
            say(
                f"the master at {self._master} does not answer: it is not running, not reachable, "
                "or only one side uses TLS. Retrying until it does"
            )

    def _refuse(self, error: HostError) -> None:
        if self._was_connected:
            say(f"{error}; retrying")
        elif self._error is None:
            self._error = error
            self._reactor.stop()


def _refusal(name: str, master: str) -> HostError:
    msg = f"the master at {master} refuses `{name}`: it has another password, or no such worker"
    hint = (
        "compare --password-file with the master's file in `secrets`, --name and --slots with "
        "its farm.toml; it reads both when it starts"
    )
    return HostError(msg, hint=hint)


def _distrust(master: str, why: Failure) -> HostError | None:
    """Return the error of a master's certificate, or None if the connection failed otherwise."""
    if why.check(VerificationError):
        msg = f"the certificate of the master at {master} is for other names than this one"
        hint = "use one of its names, or add this one to `names` in farm.toml and restart it"
        return HostError(msg, hint=hint)
    if not isinstance(why.value, SSL.Error):
        return None
    reasons = "; ".join(part[-1] for part in why.value.args[0]) if why.value.args else ""
    if "certificate" in reasons:
        msg = f"the master at {master} can't be trusted: {reasons}"
        hint = "check that --ca is a copy of its tls/ca.pem, and that its certificate is valid"
    else:
        msg = f"the master at {master} does not speak TLS: {reasons}"
        hint = "`tls` in its farm.toml says whether it does; --no-tls connects without"
    return HostError(msg, hint=hint)
