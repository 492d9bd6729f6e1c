"""The pages of plans, as a plug-in of Buildbot's web server."""

from collections.abc import Generator
from hashlib import sha256
from pathlib import Path
from typing import Any

from buildbot.www.resource import Resource
from twisted.internet import defer
from twisted.web import http, static
from twisted.web.error import Error
from twisted.web.resource import Resource as Folder

from torchyard.errors import HostError
from torchyard_farm.master.db.plan_tables import (
    count_jobs,
    read_attempts,
    read_page_ids,
    read_past_builds,
)
from torchyard_farm.scheduling.plans import Plans, history_page
from torchyard_farm.web.grid import plan_grid
from torchyard_farm.web.history import task_history
from torchyard_farm.web.markup import POLICY, PageView, read_page_data
from torchyard_farm.web.plan_list import ListedPlan, list_view
from torchyard_farm.web.plan_page import LISTED, plan_view, shown_blocks, wanted_blocks
from torchyard_farm.web.progress import plan_progress

_FILES = {
    "page.css": "text/css",
    "page.js": "text/javascript",
    "scripts.js": "text/javascript",  # Buildbot's own pages ask for this and the next
    "styles.css": "text/css",
}
_KINDS = {True: "application/json", False: "text/html; charset=utf-8"}
_JSON = ".json"
_LIST = "index"
_LISTED = 50
"""So many plans that are over are listed."""

_FRESH, _REST = 1.5, 10
"""Seconds for which an answer is given to others who ask the same; it is given so many times as
long as it took to make: whoever looks does not keep the master from its work."""

_MOST = 16
"""So many answers are kept for that."""


class _Plans(Folder):
    """All pages: their files, the list of plans, and each plan by its name."""

    def __init__(self) -> None:
        super().__init__()
        self.master: Any = None
        self._views: dict[tuple[str, frozenset[int]], tuple[float, PageView]] = {}
        for name, kind in _FILES.items():
            file: Any = static.Data(read_page_data(name).encode(), kind)
            self.putChild(name.encode(), file)

    def getChild(self, path: bytes, request: Any) -> Any:
        name = path.decode(errors="replace")
        return _Page(self, name.removesuffix(_JSON), is_json=name.endswith(_JSON))

    @defer.inlineCallbacks
    def view(self, name: str, wanted: frozenset[int]) -> Generator[Any, Any, PageView]:
        """A page; who asks a moment later gets the same."""
        clock = self.master.reactor.seconds
        now = clock()
        until, view = self._views.get((name, wanted), (0.0, None))
        if view is None or now > until:
            look = _PageReader(self.master, int(now))
            ask = look.list if name in ("", _LIST) else look.plan
            view = yield self.master.db.pool.do(ask, name, wanted)
            if view is None:
                raise Error(http.NOT_FOUND, b"there is no such plan")
            if len(self._views) >= _MOST:
                self._views.clear()
            self._views[name, wanted] = clock() + max(_FRESH, _REST * (clock() - now)), view
        return view


class _Page(Resource):
    """One page, or what has changed in it."""

    isLeaf = True

    def __init__(self, plans: _Plans, name: str, *, is_json: bool) -> None:
        super().__init__(plans.master)
        self._plans = plans
        self._name = name
        self._is_json = is_json

    def render_GET(self, request: Any) -> Any:
        return self.asyncRenderHelper(request, self._answer)

    @defer.inlineCallbacks
    def _answer(self, request: Any) -> Generator[Any, Any, bytes | None]:
        view = yield self._plans.view(self._name, wanted_blocks(request.args.get(b"show", ())))
        data = view.json() if self._is_json else view.html()
        request.setHeader("Content-Type", _KINDS[self._is_json])
        request.setHeader("Content-Security-Policy", POLICY)
        request.setHeader("X-Content-Type-Options", "nosniff")
        request.setHeader("Cache-Control", "no-cache")
        known = request.setETag(f'"{sha256(data).hexdigest()[:32]}"'.encode())
        return None if known == http.CACHED else data


class _PageReader:
    """Reads plans and tables at one moment, and makes a page of them; in a thread of its own."""

    def __init__(self, master: Any, now: int) -> None:
        self._model = master.db.model
        self._plans = Plans(Path(master.basedir))
        self._now = now

    def list(self, connection: Any, name: str, wanted: frozenset[int]) -> PageView:
        now, ended = self._plans.open(), self._plans.ended()
        ended.sort(key=self._plans.moment)
        last = ended[-_LISTED:]
        counts = count_jobs(connection, self._model, (*now, *last))
        listed = [
            ListedPlan(
                plan, self._plans.moment(plan), self._plans.count(plan), *counts[plan], is_over
            )
            for plans, is_over in ((now, False), (last, True))
            for plan in plans
        ]
        return list_view(listed, len(ended) - len(last))

    def plan(self, connection: Any, name: str, wanted: frozenset[int]) -> PageView | None:
        is_over = name in self._plans.ended()
        if not is_over and name not in self._plans.open():
            return None
        try:
            plan = self._plans.read(name)
        except HostError as error:
            (told,) = error.diagnostics
            text = f"{told.what}\nhint: {told.hint}\n"
            raise Error(http.INTERNAL_SERVER_ERROR, text.encode()) from error
        sent = read_attempts(connection, self._model, name)
        progress, grid = plan_progress(plan, sent, is_over=is_over), plan_grid(plan)
        shown = shown_blocks(progress, grid, wanted)
        pages = {task: one.builder for task, one in progress.tries.items() if one.builder}
        tasks = {*grid.shared, *(task for number in shown for task in grid.blocks[number].tasks)}
        rest = [task for task in tasks if task not in pages]
        names = {task: history_page(plan.tasks[task], plan.trial) for task in rest}
        known = read_page_ids(connection, self._model, set(names.values()))
        pages |= {task: known[name] for task, name in names.items() if name in known}
        bad = {pages[task] for task in progress.trouble[:LISTED] if task in pages}
        past = read_past_builds(connection, self._model, bad)
        history = task_history(progress, pages, past)
        return plan_view(progress, grid, shown, history, self._now)


class PlansPlugin:
    """What the entry point gives to Buildbot."""

    description = "Plans of torchyard"
    ui = True

    def __init__(self) -> None:
        self.resource = _Plans()

    def setMaster(self, master: Any) -> None:
        self.resource.master = master

    def setConfiguration(self, config: Any) -> None:
        pass


plug_in = PlansPlugin()
