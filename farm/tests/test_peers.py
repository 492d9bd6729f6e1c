"""What masters of one database have to tell each other."""

import random
from pathlib import Path

from farm.tests.made import made_plan
from torchyard_farm.jobs.peers import Differences, Mark, Watch, compare
from torchyard_farm.jobs.plans import Plans

NOTHING = Differences([], [], [], [], {})


class Database:
    """What the masters of a test share."""

    def __init__(self) -> None:
        self.plans: dict[str, str] = {}
        self.marks: dict[str, Mark] = {}

    def compare(self, here: Plans) -> Differences:
        return compare(here, self.plans, self.marks)

    def settle(self, here: Plans) -> None:
        """Do what is to be done, as a master does."""
        found = self.compare(here)
        for name in found.send:
            self.plans[name] = here.text(name)
        for name in found.fetch:
            here.put(name, self.plans[name], over=self.marks.get(name) is Mark.ENDED)
        for name in found.cancel:
            here.cancel(name)
        for name in found.end:
            here.end(name)
        self.marks |= found.mark


def test_a_plan_comes_to_all_masters_whichever_it_was_given_to(tmp_path: Path) -> None:
    database, first, second = Database(), Plans(tmp_path / "1"), Plans(tmp_path / "2")
    second.add(made_plan({0: []}, name="p"))
    for master in (first, second, first):
        database.settle(master)
    assert first.read("p") == second.read("p")
    assert database.compare(first) == database.compare(second) == NOTHING


def test_a_plan_that_ends_at_one_master_ends_at_all(tmp_path: Path) -> None:
    database, first, second = Database(), Plans(tmp_path / "1"), Plans(tmp_path / "2")
    first.add(made_plan({0: []}, name="p"))
    for master in (first, second):
        database.settle(master)
    second.cancel("p")
    for master in (second, first):
        database.settle(master)
    assert first.cancelled() == ["p"]
    first.end("p")
    for master in (first, second):
        database.settle(master)
    assert second.open() == second.cancelled() == []
    assert second.ended() == ["p"]
    assert database.compare(first) == database.compare(second) == NOTHING


def test_a_new_master_never_begins_a_plan_that_is_over(tmp_path: Path) -> None:
    database, first, late = Database(), Plans(tmp_path / "1"), Plans(tmp_path / "2")
    first.add(made_plan({0: []}, name="p"))
    first.end("p")
    for master in (first, first, late):
        database.settle(master)
    assert late.open() == []
    assert late.ended() == ["p"]


def test_in_any_order_all_know_the_same_in_the_end(tmp_path: Path) -> None:
    chance = random.Random(3)
    database = Database()
    masters = [Plans(tmp_path / str(number)) for number in range(3)]
    names = [f"p{number}" for number in range(6)]
    for name in names:
        chance.choice(masters).add(made_plan({0: []}, name=name))
    for _ in range(200):
        master = chance.choice(masters)
        database.settle(master)
        if master.open() and chance.random() < 0.1:
            name = chance.choice(master.open())
            (master.cancel if chance.random() < 0.5 else master.end)(name)
    for master in masters * 2:
        database.settle(master)
    assert all(database.compare(master) == NOTHING for master in masters)
    assert len({tuple(master.ended()) for master in masters}) == 1
    assert sorted(masters[0].open() + masters[0].ended()) == names


def test_whatever_is_closed_is_told_at_least_once() -> None:
    chance = random.Random(5)
    watch, told = Watch(), set[int]()
    assert watch.look({}) == []  # what was before is known to who begins now
    rows: dict[int, bool] = {}
    late: list[int] = []  # numbers that are given, and come to the table later than others
    for number in range(1, 3000):
        late.append(number)
        while len(late) > 3:
            rows[late.pop(chance.randrange(len(late)))] = False
        for row in [row for row, closed in rows.items() if not closed]:
            rows[row] = chance.random() < 0.2
        if chance.random() < 0.3:
            seen = {row: closed for row, closed in rows.items() if not closed or row > watch.since}
            told |= set(watch.look(seen))
    seen = {row: closed for row, closed in rows.items() if not closed or row > watch.since}
    told |= set(watch.look(seen))
    assert told == {row for row, closed in rows.items() if closed}
