"""Find the cells and jobs that words name."""

from collections.abc import Iterable
from contextlib import suppress

from torchyard.errors import SelectionError
from torchyard.model.config import Config
from torchyard.model.identifier import Identifier, parse
from torchyard.model.matrix import is_glob
from torchyard.model.recipe import Stage
from torchyard.model.selector import Name
from torchyard.plan.build import make_plan
from torchyard.plan.expand import expand
from torchyard.plan.select import selector_of
from torchyard.plan.select_jobs import matching_jobs

_LISTED = 3


def find_named(config: Config, words: Iterable[str]) -> list[Identifier]:
    """Return the cells that a selector names, or the jobs if it names a stage or a channel.

    Cells that are not planned are returned if no planned cell matches. A complete identifier need
    not belong to the matrix.

    Raises:
        SelectionError: There are none.
    """
    words = list(words)
    if len(words) == 1 and not is_glob(words[0]):
        with suppress(SelectionError):
            return [parse(words[0])]
    expansion, label = expand(config), config.project.label
    absent = [absent.cell for absent in expansion.absent]
    selector = selector_of(expansion, words, [Name.of(None, label, cell) for cell in absent])
    if selector.of_jobs:
        channels = [
            Identifier(Stage.PUBLISH, label, channel)
            for channel in config.channels
            if selector.matches(Name.of(Stage.PUBLISH, label, (channel,)))
        ]
        jobs = matching_jobs(make_plan(config), selector, or_none=bool(channels))
        found = [parse(job.identifier) for job in jobs if job.stage is not Stage.PUBLISH]
        return [*found, *channels]
    for cells in (expansion.cells, absent):
        named = [cell for cell in cells if selector.matches(Name.of(None, label, cell))]
        if named:
            return [Identifier(None, label, cell.path) for cell in named]
    raise selector.nothing()


def find_one_job(config: Config, selector: str) -> Identifier:
    """Return the one job that a selector names; a cell stands for its package job.

    Raises:
        SelectionError: There is none, or several.
    """
    found = find_named(config, selector.split())
    jobs = [name._replace(stage=name.stage or Stage.PACKAGE) for name in found]
    if len(jobs) > 1:
        more = ", …" if len(jobs) > _LISTED else ""
        listed = ", ".join(map(str, jobs[:_LISTED]))
        msg = f"`{selector}` names {len(jobs):,} jobs: {listed}{more}"
        raise SelectionError(msg, hint="name one of them, or add words")
    return jobs[0]
