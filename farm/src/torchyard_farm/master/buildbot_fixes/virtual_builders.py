"""Virtual builders: history pages, one for each cell, without workers.

Defect of Buildbot 4.3 (`db/builders.py`): `getBuilder` reads the tags of all builders to return
one, several times for each job. A farm has thousands of virtual builders.
"""

import sqlalchemy as sa
from buildbot.db.builders import BuilderModel
from buildbot.db.model import Model
from buildbot.master import BuildMaster
from twisted.internet import defer

_TAG = "_virtual_"
"""The tag by which Buildbot's web pages recognize a virtual builder."""


def read_single_builders(master: BuildMaster) -> None:
    """Let Buildbot read only the requested builder."""

    def get_builder(builderid: int) -> defer.Deferred[BuilderModel | None]:
        return master.db.pool.do(read_builder, master.db.model, builderid)

    master.db.builders.getBuilder = get_builder


async def virtual_builder_id(master: BuildMaster, name: str) -> int:
    """Return the number of a virtual builder; create a new one."""
    number = await master.data.updates.findBuilderId(name)
    await master.db.builders.updateBuilderInfo(number, None, None, None, None, [_TAG])
    return number


def read_builder(connection: sa.Connection, model: type[Model], number: int) -> BuilderModel | None:
    """Read a builder with its tags and masters, or None."""
    builders, masters = model.builders, model.builder_masters
    row = connection.execute(sa.select(builders).where(builders.c.id == number)).first()
    if row is None:
        return None
    tags = (
        sa.select(model.tags.c.name)
        .join(model.builders_tags, model.builders_tags.c.tagid == model.tags.c.id)
        .where(model.builders_tags.c.builderid == number)
    )
    owners = sa.select(masters.c.masterid).where(masters.c.builderid == number)
    return BuilderModel(
        id=row.id,
        name=row.name,
        description=row.description,
        description_format=row.description_format,
        description_html=row.description_html,
        projectid=row.projectid,
        tags=list(connection.execute(tags).scalars()),
        masterids=list(connection.execute(owners.order_by(masters.c.masterid)).scalars()),
    )
