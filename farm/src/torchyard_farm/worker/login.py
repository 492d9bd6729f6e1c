"""What a worker says when its master does not let it in, or is not the one that it seems to be."""

from typing import Any

from OpenSSL import SSL
from service_identity import VerificationError
from twisted.cred.error import UnauthorizedLogin
from twisted.python.failure import Failure
from twisted.spread import pb

from torchyard.errors import HostError
from torchyard.terminal.console import say

_PATIENCE = 20
"""Seconds after which a worker says that it still waits."""


class LoginMonitor:
    """Ends a worker that is refused before it was let in once; later it tells, and tries again.

    For a master that was restarted with a wrong file may be mended while jobs run here.
    """

    def __init__(self, master: str, reactor: Any) -> None:
        self._master = master
        self._reactor = reactor
        self._error: HostError | None = None
        self._is_in = False
        self._inside: set[str] = set()
        self._is_leaving = False

    def watch(self, name: str, factory: Any) -> None:
        """Hear how the logins of an agent end."""
        let_in, retry = factory.gotPerspective, factory.failedToGetPerspective

        def enter(perspective: Any) -> Any:
            self._enter(name)
            return let_in(perspective)

        def refused(why: Failure, broker: Any) -> Any:
            if why.check(UnauthorizedLogin):
                self._refuse(_refusal(name, self._master))
                if not self._is_in:
                    return None
            elif not why.check(pb.PBConnectionLost):
                told = why.getErrorMessage()
                say(f"the master at {self._master} can't let `{name}` in now: {told}; trying again")
            return retry(why, broker)

        def lost(why: Failure) -> None:
            self._lose(name)
            error = _distrust(self._master, why)
            if error is not None:
                self._refuse(error)

        class Broker(pb.Broker):
            def connectionLost(self, reason: Any = None) -> None:
                super().connectionLost(reason)
                lost(reason)

        factory.gotPerspective = enter
        factory.failedToGetPerspective = refused
        factory.protocol = Broker

    def wait(self) -> None:
        """Say so if it takes long."""
        self._reactor.callLater(_PATIENCE, self._say_waiting)
        self._reactor.addSystemEventTrigger("before", "shutdown", self._leave)

    def tell(self) -> None:
        """Raise what ended the worker, if it did not end as it was meant to."""
        if self._error is not None:
            raise self._error

    def _enter(self, name: str) -> None:
        if not self._inside:
            say(f"working for the master at {self._master}; worker.log has what is done")
        self._inside.add(name)
        self._is_in = True

    def _lose(self, name: str) -> None:
        if self._inside == {name} and not self._is_leaving:
            say(f"the line to the master at {self._master} broke; jobs go on. Trying again")
        self._inside.discard(name)

    def _leave(self) -> None:
        self._is_leaving = True

    def _say_waiting(self) -> None:
        if not self._is_in:
            say(
                f"the master at {self._master} does not answer; it is not running or not in reach, "
                "or only one of us uses TLS. Trying again until it does"
            )

    def _refuse(self, error: HostError) -> None:
        if self._is_in:
            say(f"{error}; trying again")
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
    """What is wrong with the certificate of a master; None if the line broke for another reason."""
    if why.check(VerificationError):
        msg = f"the certificate of the master at {master} is for other names than this one"
        hint = "use one of its names, or add this one to `names` in farm.toml and restart it"
        return HostError(msg, hint=hint)
    if not isinstance(why.value, SSL.Error):
        return None
    reasons = "; ".join(part[-1] for part in why.value.args[0]) if why.value.args else ""
    if "certificate" in reasons:
        msg = f"the master at {master} can't be trusted: {reasons}"
        hint = "is --ca a copy of its tls/ca.pem, and has its certificate expired?"
    else:
        msg = f"the master at {master} does not speak TLS: {reasons}"
        hint = "`tls` in its farm.toml says whether it does; --no-tls does without"
    return HostError(msg, hint=hint)
