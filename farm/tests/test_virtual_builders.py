"""History pages, which are virtual builders."""

import sqlalchemy as sa
from buildbot.db.builders import BuilderModel
from buildbot.db.model import Model

from farm.tests.stand_ins import stands_in
from farm.tests.tables import Tables, tables_in_memory
from torchyard_farm.master.buildbot_fixes.virtual_builders import read_builder


def add_words(tables: Tables, pages: range) -> None:
    """Add virtual builders with tags, and a master of the first one."""
    for number, name in enumerate(("_virtual_", "nightly"), 1):
        tables.add("tags", id=number, name=name, name_hash=name)
    for page in pages:
        tables.add("builders", id=page, name=f"demo/{page}", name_hash=str(page))
        for word in (1, 2):
            tables.add("builders_tags", builderid=page, tagid=word)
    tables.add("builder_masters", builderid=pages[0], masterid=1)


def test_a_builder_has_its_own_words_and_masters() -> None:
    with tables_in_memory() as tables:
        add_words(tables, range(20, 30))
        found = read_builder(tables.connection, Model, 20)
        assert found == BuilderModel(20, "demo/20", tags=["_virtual_", "nightly"], masterids=[1])
        found = read_builder(tables.connection, Model, 29)
        assert found == BuilderModel(29, "demo/29", tags=["_virtual_", "nightly"])
        assert read_builder(tables.connection, Model, 7) == BuilderModel(7, "demo/cell")
        assert read_builder(tables.connection, Model, 8) is None


def test_as_many_rows_are_read_however_many_pages_there_are() -> None:
    with tables_in_memory() as tables:
        add_words(tables, range(20, 300))
        seen = _Counting(tables.connection)
        read_builder(stands_in(sa.Connection, seen), Model, 299)
        assert seen.rows == 3  # itself and two tags


class _Counting:
    """A connection that counts the rows that are read."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        self.rows = 0

    def execute(self, query: sa.Select[tuple[object, ...]]) -> sa.Result[tuple[object, ...]]:
        result = self._connection.execute(query).freeze()
        self.rows += len(result().all())
        return result()
