"""Render pages from the templates in `data/templates`, with escaped values."""

from collections.abc import Callable, Mapping
from typing import cast

from jinja2 import Environment, FunctionLoader, StrictUndefined

from torchyard.host.files import read_data
from torchyard.host.own_files import WRITTEN

Filters = Mapping[str, object]
"""Filters of templates, by name."""


def render_template(template: str, filters: Filters, **values: object) -> str:
    """Render a template; an undefined name is an error."""
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
