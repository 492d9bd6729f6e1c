"""The pages of plans, as a plug-in of Buildbot's web server."""

from hashlib import sha256
from pathlib import Path
from typing import cast

import sqlalchemy as sa
from buildbot.master import BuildMaster
from buildbot.www.resource import Resource
from twisted.web import http, static
from twisted.web.error import Error
from twisted.web.resource import IResource
from twisted.web.resource import Resource as Folder
from twisted.web.server import Request

from torchyard.errors import HostError
from torchyard_farm.master.db.plan_tables import (
    count_jobs,
    read_attempts,
    read_page_ids,
    read_past_builds,
)
from torchyard_farm.scheduling.plans import Plans, history_page
from torchyard_farm.twisted_tools import async_to_deferred
from torchyard_farm.web.grid import plan_grid
from torchyard_farm.web.history import task_history
from torchyard_farm.web.markup import POLICY, PageView, read_page_data
from torchyard_farm.web.plan_list import ListedPlan, list_view
from torchyard_farm.web.plan_page import LISTED, plan_view, shown_blocks, wanted_blocks
from torchyard_farm.web.progress import plan_progress

_FILES = {
    "shared.css": "text/css",  # of all pages that torchyard writes
    "page.css": "text/css",
    "page.js": "text/javascript",
    "scripts.js": "text/javascript",  # Buildbot's own pages load this and the next
    "styles.css": "text/css",
}
_CONTENT_TYPES = {True: "application/json", False: "text/html; charset=utf-8"}
_JSON = ".json"
_LIST = "index"
_LISTED = 50
"""Maximum number of ended plans in the list."""

_FRESH, _BACKOFF = 1.5, 10
"""A page is cached for `_FRESH` seconds, or `_BACKOFF` times its rendering time, so that
viewers do not slow the master down."""

_CACHED = 16
"""Maximum number of cached pages."""


class _Plans(Folder):
    """All pages: static files, the list of plans, and each plan by its name."""

    master: BuildMaster

    def __init__(self) -> None:
        super().__init__()
        self._views: dict[tuple[str, frozenset[int]], tuple[float, PageView]] = {}
        for name, kind in _FILES.items():
            file = static.Data(read_page_data(name).encode(), kind)
            self.putChild(name.encode(), cast("IResource", file))

    def getChild(self, path: bytes, request: Request) -> Resource:
        name = path.decode(errors="replace")
        return _Page(self, name.removesuffix(_JSON), is_json=name.endswith(_JSON))

    async def view(self, name: str, wanted: frozenset[int]) -> PageView:
        """Return a page, which is cached for a moment."""
        clock = self.master.reactor.seconds
        now = clock()
        until, view = self._views.get((name, wanted), (0.0, None))
        if view is None or now > until:
            reader = _PageReader(self.master, int(now))
            read = reader.list if name in ("", _LIST) else reader.plan
            view = await self.master.db.pool.do(read, name, wanted)
            if view is None:
                raise Error(http.NOT_FOUND, b"there is no such plan")
            if len(self._views) >= _CACHED:
                self._views.clear()
            self._views[name, wanted] = clock() + max(_FRESH, _BACKOFF * (clock() - now)), view
        return view


class _Page(Resource):
    """A page as HTML, or as JSON with the parts that a browser replaces."""

    isLeaf: int = True

    def __init__(self, plans: _Plans, name: str, *, is_json: bool) -> None:
        super().__init__(plans.master)
        self._plans = plans
        self._name = name
        self._is_json = is_json

    def render_GET(self, request: Request) -> int:
        return self.asyncRenderHelper(request, self._answer)

    @async_to_deferred
    async def _answer(self, request: Request) -> bytes | None:
        shown = (request.args or {}).get(b"show", ())
        view = await self._plans.view(self._name, wanted_blocks(shown))
        data = view.json() if self._is_json else view.html()
        request.setHeader("Content-Type", _CONTENT_TYPES[self._is_json])
        request.setHeader("Content-Security-Policy", POLICY)
        request.setHeader("X-Content-Type-Options", "nosniff")
        request.setHeader("Cache-Control", "no-cache")
        answer = request.setETag(f'"{sha256(data).hexdigest()[:32]}"'.encode())
        return None if answer == http.CACHED else data


class _PageReader:
    """Reads plans and tables at one moment and renders a page; runs in a database thread."""

    def __init__(self, master: BuildMaster, now: int) -> None:
        self._model = master.db.model
        self._plans = Plans(Path(master.basedir))
        self._now = now

    def list(self, connection: sa.Connection, name: str, wanted: frozenset[int]) -> PageView:
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

    def plan(self, connection: sa.Connection, name: str, wanted: frozenset[int]) -> PageView | None:
        is_over = name in self._plans.ended()
        if not is_over and name not in self._plans.open():
            return None
        try:
            plan = self._plans.read(name)
        except HostError as error:
            (diagnostic,) = error.diagnostics
            text = f"{diagnostic.what}\nhint: {diagnostic.hint}\n"
            raise Error(http.INTERNAL_SERVER_ERROR, text.encode()) from error
        attempts = read_attempts(connection, self._model, name)
        progress, grid = plan_progress(plan, attempts, is_over=is_over), plan_grid(plan)
        shown = shown_blocks(progress, grid, wanted)
        pages = {task: last.builder for task, last in progress.attempts.items() if last.builder}
        tasks = {*grid.shared, *(task for number in shown for task in grid.blocks[number].tasks)}
        rest = [task for task in tasks if task not in pages]
        names = {task: history_page(plan.tasks[task], plan.trial) for task in rest}
        page_ids = read_page_ids(connection, self._model, set(names.values()))
        pages |= {task: page_ids[name] for task, name in names.items() if name in page_ids}
        bad = {pages[task] for task in progress.trouble[:LISTED] if task in pages}
        past = read_past_builds(connection, self._model, bad)
        history = task_history(progress, pages, past)
        return plan_view(progress, grid, shown, history, self._now)


class PlansPlugin:
    """The plug-in that the entry point gives to Buildbot."""

    description = "Plans of torchyard"
    ui = True

    def __init__(self) -> None:
        self.resource = _Plans()

    def setMaster(self, master: BuildMaster) -> None:
        self.resource.master = master

    def setConfiguration(self, config: object) -> None:
        pass


plug_in = PlansPlugin()
