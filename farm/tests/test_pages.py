"""The pages of plans, as text."""

import re
import time
from collections.abc import Iterable
from html.parser import HTMLParser

import msgspec
import pytest

from farm.tests.factories import made_plan, matrix_plan, real_plan
from tests.support.helpers import SMALL, plan_of
from torchyard_farm.scheduling.plans import FarmPlan, farm_plan
from torchyard_farm.web.grid import plan_grid
from torchyard_farm.web.history import PastBuild, task_history
from torchyard_farm.web.markup import PageView
from torchyard_farm.web.plan_list import ListedPlan, list_view
from torchyard_farm.web.plan_page import plan_view, shown_blocks, wanted_blocks
from torchyard_farm.web.progress import JobAttempt, plan_progress

HOSTILE = "<script>alert(1)</script>\"'&$title"
_VOID = {"meta", "link", "wbr", "rect"}


class Reader(HTMLParser):
    """Parses a page strictly: all elements are closed, and ids are unique."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []
        assert len(self.ids) == len(set(self.ids))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append((tag, found))
        if found.get("id"):
            self.ids.append(found["id"] or "")
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def view_of(
    plan: FarmPlan,
    sent: Iterable[JobAttempt] = (),
    wanted: Iterable[int] = (),
    *,
    is_over: bool = False,
) -> PageView:
    progress, grid = plan_progress(plan, sent, is_over=is_over), plan_grid(plan)
    shown = shown_blocks(progress, grid, set(wanted))
    past = [PastBuild(8, "core", good=False, ended=ended) for ended in (960, 60)]
    return plan_view(progress, grid, shown, task_history(progress, {0: 5, 1: 8}, past), 1000)


def read(view: PageView) -> Reader:
    return Reader(view.html().decode())


def whole() -> FarmPlan:
    return farm_plan(plan_of(SMALL), (), name="torch-1", store="s")


def test_each_task_is_in_the_grid_with_the_word_for_its_state() -> None:
    plan = farm_plan(real_plan(), (), name="p", store="s")
    view = view_of(
        plan, [JobAttempt(0, "good", 7, 1), JobAttempt(1, "bad", 8, 2, 900, 960, "w1", "Oh no")]
    )
    words = re.findall(r'class="chip s-[a-z-]+"[^>]*>([a-z ]+)<', view.body)
    legend = ["failed", "blocked", "done"]
    assert sorted(words) == sorted([*legend, "failed", "done", "failed", *["blocked"] * 8])
    assert "1 of 10 jobs done." in view.parts["totals"]
    assert view.news == "1 failed"
    page = read(view)
    links = {tag["href"]: tag.get("aria-label") for name, tag in page.tags if name == "a"}
    assert links["../../#/builders/7/builds/1"] == "source:demo-1.0: done"
    assert links["../../#/builders/8/builds/2"] == f"{plan.tasks[1].id}: failed"
    assert "Oh no" in view.parts["failures"]
    assert "on w1, since" in view.parts["failures"]
    assert "1970-01-01 00:01 UTC</time>, 2 times in a row, <a" in view.parts["failures"]
    assert "8 jobs can't start before that." in view.parts["failures"]


def test_what_was_never_built_leads_to_the_history_of_its_cell() -> None:
    view = view_of(made_plan({0: [], 1: []}))
    assert 'href="../../#/builders/5"' in view.parts["b0"]
    assert view.parts["b0"].count("<a ") == 2


def test_what_runs_is_told_with_how_far_it_is() -> None:
    told = "step 2/3: compile, 7 of 9"
    view = view_of(made_plan({0: []}), [JobAttempt(0, None, 7, 1, 0, None, "w1", told)])
    assert told in view.parts["running"]
    assert "1970-01-01 00:00 UTC" in view.parts["running"]


def test_the_end_is_told() -> None:
    view = view_of(made_plan({0: []}), [JobAttempt(0, "good", 7, 1, 0, 9)], is_over=True)
    assert "1 of 1 job done. This plan is over." in view.parts["totals"]
    assert view.news == "all jobs are done"
    assert 'data-live="no"' in view.html().decode()
    assert "refresh" not in view.html().decode()
    assert msgspec.json.decode(view.json())["live"] is False


def test_a_time_is_told_when_it_can_be_known() -> None:
    plan = made_plan({0: [], 1: [], 2: []})
    done = JobAttempt(0, "good", 7, 1, 0, 600)
    assert "left" not in view_of(plan, [done]).parts["totals"]
    view = view_of(plan, [done, JobAttempt(1, None, 7, 2, 1000)])
    assert "about 20 min left at this pace" in view.parts["totals"]


@pytest.mark.parametrize("name", [HOSTILE, "../../etc/passwd", "a b", "$$", "日本"])
def test_names_are_only_ever_text(name: str) -> None:
    plan = made_plan({0: [], 1: [0]}, name=name)
    task = msgspec.structs.replace(plan.tasks[0], id=name, scope=f"{name}/{name}/{name}/{name}")
    plan = msgspec.structs.replace(plan, tasks=(task, plan.tasks[1]))
    view = view_of(plan, [JobAttempt(0, "bad", 1, 1, 1, 2, name, name)])
    page = read(view)
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert not any(key.startswith("on") for _, tag in page.tags for key in tag)
    assert name.replace("/", "") in "".join(page.texts).replace("/", "")
    listed = read(list_view([ListedPlan(name, 0, 1)], 0))
    assert [tag for tag, _ in listed.tags].count("script") == 1
    hrefs = [str(tag["href"]) for kind, tag in listed.tags if kind == "a"]
    assert all(re.fullmatch(r"[\w.%~-]+|\.\./\.\./|\./", href) for href in hrefs)


def test_every_link_and_button_has_a_name() -> None:
    view = view_of(whole(), [JobAttempt(0, "bad", 1, 1, 1, 2, "w1", "why")])
    text = view.html().decode()
    for found in re.finditer(r"<(a|button)\b([^>]*)>(.*?)</\1>", text):
        assert re.sub("<[^>]*>", "", found[3]).strip() or "aria-label" in found[2]
    assert all(
        tag.get("aria-label") for kind, tag in read(view).tags if kind in ("svg", "section", "nav")
    )


def test_the_parts_of_the_page_are_those_of_the_answer() -> None:
    view = view_of(whole())
    told = msgspec.json.decode(view.json())
    assert told["live"] is True
    for key, html in told["parts"].items():
        assert f'id="{key}"' in view.body
        assert html in view.body
    assert len(plan_grid(whole()).blocks) == len([key for key in told["parts"] if key[0] == "b"])


def test_a_large_plan_is_folded_and_quick() -> None:
    plan = matrix_plan(128)
    assert len(plan.jobs) > 10_000
    grid = plan_grid(plan)
    bad = grid.blocks[70].lines[3].tasks[1]
    assert bad is not None
    sent = [JobAttempt(n, "good", 1, n, 1, 60, "w1", "built in 1 s") for n in range(5000)]
    began = time.process_time()
    view = view_of(plan, [*sent, JobAttempt(bad, "bad", 1, 1, 1, 2, "w1", "why")], wanted=[3, 999])
    data = view.html(), view.json()
    lasted = time.process_time() - began
    print(f"{len(plan.jobs):,} jobs: {lasted:.3f} s, {len(data[0]):,} B, {len(data[1]):,} B")
    assert lasted < 10
    assert max(map(len, data)) < 200_000
    unfolded = {key for key, html in view.parts.items() if 'scope="row"' in html}
    assert unfolded == {"b3", "b70"}  # what was asked for, and what has a failure
    assert "1 ready, 80 waiting" in view.parts["b100"]
    assert 'href="?show=100#b100"' in view.parts["b100"]
    read(view)


def test_whatever_is_asked_for_is_a_number_or_passed_over() -> None:
    asked = [b"1", b"", b"-2", "\u0663".encode(), b"9" * 5000, b"<b>", b"12"]
    assert wanted_blocks(asked) == {1, 12}


def test_not_even_a_thousand_failures_make_a_large_page() -> None:
    plan = matrix_plan(128)
    view = view_of(
        plan, [JobAttempt(n, "bad", 1, n, 1, 60, "w1", "why") for n in range(len(plan.jobs))]
    )
    assert len(view.html()) < 300_000
    assert view.parts["failures"].count("<li>") == 50
    assert "10,319 more are in the grid." in view.parts["failures"]


def test_plans_are_listed_with_how_they_are() -> None:
    plans = [
        ListedPlan("new", 3, 4, good=1, out=2),
        ListedPlan("failed", 2, 4, good=1, bad=1),
        ListedPlan("waits", 1, 4),
        ListedPlan("torn", 0, 0),
        ListedPlan("over", 0, 4, good=4, is_over=True),
        ListedPlan("ended", 0, 4, good=3, bad=1, is_over=True),
    ]
    view = list_view(plans, 7)
    words = re.findall(r'<strong class="p-\w+">(\w+)<', view.body)
    assert words == ["building", "failed", "building", "unreadable", "done", "cancelled"]
    assert "7 older ones are not listed." in view.parts["ended"]
    assert view.news == "1 with failures"
    read(view)
    assert "None." in list_view([], 0).parts["open"]
