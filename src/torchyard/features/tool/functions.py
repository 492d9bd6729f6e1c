"""The functions behind `torchyard tool`, as commands."""

from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from typing import get_args, get_origin

import click
import msgspec

from torchyard.cli.lazy_group import feature_modules
from torchyard.model.job_spec import JobSpec
from torchyard.recipes.tools import TOOLS

_JOBS = ("doctor", "equip", "snapshot", "survey")


def tool_modules() -> dict[str, str]:
    """Return the module of each tool: in `recipes/tools`, a feature's `tool.py`, or `jobs.py`."""
    own = {name: f"torchyard.recipes.{module}" for name, module in TOOLS.items()}
    jobs = dict.fromkeys(_JOBS, "torchyard.features.tool.jobs")
    return {**own, **jobs, **{name: module for (name,), module in feature_modules("tool").items()}}


def tool_command(name: str) -> click.Command | None:
    """Return the command for a function; its parameters after `*` are options."""
    module = tool_modules().get(name)
    if module is None:
        return None
    function = getattr(import_module(module), f"{name.replace('-', '_')}_tool")
    parameters = [_parameter(parameter) for parameter in signature(function).parameters.values()]
    return click.Command(name, params=parameters, callback=function, help=function.__doc__)


def _spec(path: str) -> JobSpec:
    return msgspec.json.decode(Path(path).read_bytes(), type=JobSpec)


_TYPES = {str: str, Path: Path, JobSpec: _spec}


def _parameter(parameter: Parameter) -> click.Parameter:
    annotation = parameter.annotation
    read = _TYPES[next(iter(get_args(annotation)), annotation)]
    is_many = get_origin(annotation) is tuple
    if parameter.kind is not Parameter.KEYWORD_ONLY:
        return click.Argument([parameter.name], type=read, nargs=-1 if is_many else 1)
    is_required = parameter.default is Parameter.empty
    return click.Option([f"--{parameter.name}"], type=read, multiple=is_many, required=is_required)
