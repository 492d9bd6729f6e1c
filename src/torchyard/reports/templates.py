"""Pages from the templates in `data/templates`. What is put into them is escaped."""

from collections.abc import Callable, Mapping
from typing import cast

from jinja2 import Environment, FunctionLoader, StrictUndefined

from torchyard.host.files import read_data
from torchyard.host.own_files import WRITTEN

Filters = Mapping[str, object]
"""Functions that a template applies to values, by name."""


def render_template(template: str, filters: Filters, **values: object) -> str:
    """Fill a template; a name that it uses and that is not given is an error."""
    environment = Environment(
        autoescape=True,
        loader=FunctionLoader(lambda name: read_data(f"templates/{name}")),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    environment.globals["written"] = WRITTEN
    environment.filters.update(cast("Mapping[str, Callable[[object], object]]", filters))
    return environment.get_template(template).render(values)
