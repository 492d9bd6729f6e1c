"""Whatever is printed as the name of a cell or a job selects it, and nothing else."""

from collections.abc import Iterator

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.property.strategies import Toml, configs
from tests.support.helpers import plan_of, toml_text

from torchyard.errors import PlanError
from torchyard.model.identifier import Cell, parse
from torchyard.model.selector import Name, named_jobs
from torchyard.plan.find import find_named, find_one_job
from torchyard.plan.graph import Job, Plan
from torchyard.plan.select import PlanSelection, ReadSelection, selector_of
from torchyard.plan.select_jobs import matching_jobs


def drawn_plan(toml: Toml) -> Plan:
    try:
        return plan_of(toml_text(toml))
    except PlanError:
        assume(False)
        raise


def spellings(identifier: str) -> Iterator[str]:
    """Yield how reports, tables and messages print an identifier."""
    stage, colon, cell = identifier.rpartition(":")
    _, _, path = cell.partition("/")
    yield identifier
    if path:
        yield f"{stage}{colon}{path}"
        yield f"{stage} {path}" if colon else f"*/{path}"


@settings(max_examples=10)
@given(toml=configs(), data=st.data())
def test_a_printed_name_can_be_typed(toml: Toml, data: st.DataObject) -> None:
    plan = drawn_plan(toml)
    jobs = {job.identifier: job.identifier for job in plan.jobs}
    cell = data.draw(st.sampled_from(list(plan.cells())))
    for text in spellings(f"{plan.label}/{cell.path}"):
        assert ReadSelection(plan.expansion, PlanSelection(select=(text,))).cells() == [cell]
        assert find_named(plan.config, text.split()) == [parse(f"{plan.label}/{cell.path}")]
        assert str(find_one_job(plan.config, text)) == f"package:{plan.label}/{cell.path}"
        assert {jobs[one].partition(":")[2] for one in named_jobs(jobs, text.split())} == {
            f"{plan.label}/{cell.path}"
        }
    job: Job = data.draw(st.sampled_from(plan.jobs))
    for text in spellings(job.identifier):
        assert matching_jobs(plan, selector_of(plan.expansion, [text])) == [job]
        assert named_jobs(jobs, text.split()) == [job.identifier]
    assert find_named(plan.config, text.split()) == [parse(job.identifier)]
    assert plan_of(toml_text(toml), PlanSelection(select=(text,))).jobs[-1].key == job.key


@settings(max_examples=10)
@given(toml=configs(), data=st.data())
def test_values_of_a_dimension_add_and_dimensions_narrow(toml: Toml, data: st.DataObject) -> None:
    plan = drawn_plan(toml)
    cells = list(plan.cells())
    fields = data.draw(st.sets(st.sampled_from(range(5)), min_size=1))
    wanted = {
        field: data.draw(st.sets(st.sampled_from([cell[field] for cell in cells]), min_size=1))
        for field in fields
    }
    words = data.draw(st.permutations([word for values in wanted.values() for word in values]))
    selector = selector_of(plan.expansion, words)
    chosen = [cell for cell in cells if selector.matches(Name.of(None, plan.label, cell))]
    assert chosen == [
        cell for cell in cells if all(cell[field] in values for field, values in wanted.items())
    ]


@settings(max_examples=10)
@given(toml=configs(), data=st.data())
def test_several_identifiers_add(toml: Toml, data: st.DataObject) -> None:
    plan = drawn_plan(toml)
    cells: list[Cell] = data.draw(st.lists(st.sampled_from(list(plan.cells())), min_size=1))
    select = tuple(cell.path for cell in cells)
    assert set(ReadSelection(plan.expansion, PlanSelection(select=select)).cells()) == set(cells)
    jobs: list[Job] = data.draw(st.lists(st.sampled_from(plan.jobs), min_size=1))
    words = [job.identifier for job in jobs]
    found = matching_jobs(plan, selector_of(plan.expansion, words))
    assert {job.identifier for job in found} == set(words)
