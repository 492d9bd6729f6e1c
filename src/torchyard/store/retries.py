"""Repeat operations on a store while an error may be transient."""

import random
import re
import time
from collections.abc import Callable
from typing import TypeVar

from obstore.exceptions import AlreadyExistsError, BaseError, NotSupportedError

from torchyard.store.refusals import METADATA, unreachable

PATIENCE = 60.0
"""Seconds of failures after which to give up on a store."""

_FINAL = re.compile(r"status code: 40[1345]\b")
"""Errors of obstore that a retry can't fix."""

T = TypeVar("T")


class Attempts:
    """The number of failed attempts, and the time of the first."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.attempt = 0


class Retries:
    """Repeats operations on one store."""

    def __init__(self, url: str, *, is_bucket: bool) -> None:
        self._url = url
        self._is_bucket = is_bucket
        self._is_down = False
        self._has_answered = False

    def run(self, what: str, ask: Callable[[], T]) -> T:
        """Call `ask` until it succeeds; obstore itself retries only some errors."""
        trial = Attempts()
        while True:
            try:
                done = ask()
            except (BaseError, OSError) as error:
                self.pause(what, error, trial)
            else:
                self.progress()
                return done

    def progress(self) -> Attempts:
        """Note a success: the time until giving up starts again."""
        self._is_down = False
        self._has_answered = True
        return Attempts()

    def pause(self, what: str, error: Exception, trial: Attempts) -> None:
        """Wait before a retry; raise if a retry can't help or the time is up.

        After that, try each operation only once, until one succeeds.
        """
        if not self._is_transient(error):
            raise unreachable(self._url, what, error) from error
        if self._is_down or time.monotonic() - trial.began > PATIENCE:
            self._is_down = True
            raise unreachable(self._url, what, error) from error
        trial.attempt += 1
        spread = random.uniform(0.5, 1)  # noqa: S311 - only to spread
        time.sleep(spread * min(5.0, 0.1 * 2**trial.attempt))

    def _is_transient(self, error: Exception) -> bool:
        """Return whether an error may be transient; errors of disks and credentials are not."""
        if isinstance(error, AlreadyExistsError | FileExistsError):
            return True
        if METADATA in str(error):
            return self._has_answered
        final = isinstance(error, NotSupportedError | FileNotFoundError)
        return self._is_bucket and not final and not _FINAL.search(str(error))
