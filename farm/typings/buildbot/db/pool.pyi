from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

import sqlalchemy as sa
from twisted.internet.defer import Deferred

P = ParamSpec("P")
T = TypeVar("T")

class _Engine(sa.Engine):
    should_retry: Callable[[sa.exc.OperationalError], bool]

class DBThreadPool:
    engine: _Engine
    def do(
        self,
        callable: Callable[Concatenate[sa.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Deferred[T]: ...
    def do_with_transaction(
        self,
        callable: Callable[Concatenate[sa.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Deferred[T]: ...
