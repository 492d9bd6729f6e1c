"""Who is asked first to go on with a job: the worker that was at it when the master stopped."""


def may_take(worker: int, last: int | None, since_start: float, grace: float) -> bool:
    """Whether a worker may take a job that was begun on `last`.

    A job outlives the connection, and is found again by the same worker; so for a while after the
    master's start nobody else gets it.
    """
    return last is None or worker == last or since_start > grace
