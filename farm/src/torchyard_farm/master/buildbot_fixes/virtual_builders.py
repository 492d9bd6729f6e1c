"""The pages of cells: to Buildbot, each is a builder for which no worker works.

A farm has thousands of them. Whenever Buildbot looks at one builder it reads the words of all, and
it does so several times for each job: what is here takes the place of that.
"""

from collections.abc import Generator
from typing import Any

import sqlalchemy as sa
from buildbot.db.builders import BuilderModel
from twisted.internet import defer

_WORD = "_virtual_"
"""The word by which Buildbot's web pages know such a builder."""


def read_single_builders(master: Any) -> None:
    """Let Buildbot read what it wants to know of one builder, and no more."""

    def get_builder(builderid: int) -> Any:
        return master.db.pool.do(read_builder, master.db.model, builderid)

    master.db.builders.getBuilder = get_builder


@defer.inlineCallbacks
def virtual_builder_id(master: Any, name: str) -> Generator[Any, Any, int]:
    """Find the page of a cell, or make it; its number."""
    number: int = yield master.data.updates.findBuilderId(name)
    nothing = (None, None, None, None)
    yield master.db.builders.updateBuilderInfo(number, *nothing, [_WORD])
    return number


def read_builder(connection: Any, model: Any, number: int) -> BuilderModel | None:
    """Read a builder with its words, and the masters that have it."""
    builders, masters = model.builders, model.builder_masters
    row = connection.execute(sa.select(builders).where(builders.c.id == number)).first()
    if row is None:
        return None
    words = (
        sa.select(model.tags.c.name)
        .join(model.builders_tags, model.builders_tags.c.tagid == model.tags.c.id)
        .where(model.builders_tags.c.builderid == number)
    )
    having = sa.select(masters.c.masterid).where(masters.c.builderid == number)
    return BuilderModel(
        id=row.id,
        name=row.name,
        description=row.description,
        description_format=row.description_format,
        description_html=row.description_html,
        projectid=row.projectid,
        tags=list(connection.execute(words).scalars()),
        masterids=list(connection.execute(having.order_by(masters.c.masterid)).scalars()),
    )
