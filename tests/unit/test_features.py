"""A feature is a folder: what it needs is in it, and the rest works without it."""

import inspect
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import click
import msgspec
import pytest
from tests.support.helpers import ROOT

from torchyard.cli.lazy_group import feature_modules, subcommands
from torchyard.cli.main import torchyard as program
from torchyard.cli.output import CALLS, REPORTS, Report
from torchyard.model.values import Reported
from torchyard.workspace.build_request import BuildRequest

SHARED = {"file", "as_json"}
"""Options of all commands that read a configuration; not every use case needs it."""
REQUESTED = {"words", "store_url"}
"""Options of a `BuildRequest` that have other names there."""
GIVEN = {"meter", "on_line", "confirm", "for_json"}
"""What a use case is given beside options."""


def commands_of(known: Mapping[str, Report]) -> dict[str, tuple[click.Command, Report]]:
    """Return the commands with these reports, by their names."""
    found: dict[str, tuple[click.Command, Report]] = {}

    def collect(ctx: click.Context, name: str) -> None:
        if report := known.get(name):
            found[name] = ctx.command, report
        for below in subcommands(ctx):
            collect(below, f"{name}_{below.info_name}".lstrip("_").replace("-", "_"))

    collect(click.Context(program), "")
    return found


COMMANDS = commands_of(REPORTS)
CALLING = commands_of(CALLS)


def test_every_report_is_of_a_command_of_its_name() -> None:
    assert set(COMMANDS) == set(REPORTS)
    assert set(CALLING) == set(CALLS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_report_has_a_value_and_a_text(name: str) -> None:
    report = COMMANDS[name][1]
    assert isinstance(report.value_type, type)
    assert issubclass(report.value_type, Reported)
    assert msgspec.json.schema(report.value_type)["$defs"]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_used_and_every_parameter_is_given(name: str) -> None:
    command, report = COMMANDS[name]
    options = {str(param.name) for param in command.params if param.expose_value}
    paths = [one for one in command.params if isinstance(one.type, click.Path)]
    files = {str(param.name) for param in paths if param.metavar == "FILE"}
    functions = [report.use_case, report.writer("text"), report.error_function]
    for form in files - {"file"}:
        assert callable(report.writer(form))
    asked = {
        parameter: given.default
        for function in functions
        if function
        for parameter, given in inspect.signature(function).parameters.items()
    }
    if "facts" in asked:  # all options that are named nowhere else
        return
    requested = set(BuildRequest.__struct_fields__) | REQUESTED if "request" in asked else set()
    assert options - files - SHARED - requested <= set(asked)
    required = {p for p, default in asked.items() if default is inspect.Parameter.empty}
    values = {next(iter(inspect.signature(f).parameters)) for f in functions[1:] if f}
    assert required - values <= options | GIVEN | {"request"}


@pytest.mark.parametrize("name", CALLING)
def test_every_option_of_a_command_without_a_report_is_used(name: str) -> None:
    command, report = CALLING[name]
    options = {str(param.name) for param in command.params if param.expose_value} - {"as_json"}
    asked = inspect.signature(report.use_case).parameters
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in asked.values()):
        return
    assert options <= set(asked)
    required = {name for name, one in asked.items() if one.default is inspect.Parameter.empty}
    assert required <= options | GIVEN | {"on_event", "on_followed"}


@pytest.mark.parametrize("name", [*COMMANDS, *CALLING])
def test_every_default_of_an_option_is_one_of_its_values(name: str) -> None:
    command = (COMMANDS.get(name) or CALLING[name])[0]
    ctx = click.Context(command)
    for param in command.params:
        if isinstance(param, click.Option) and isinstance(param.default, int | str):
            param.type_cast_value(ctx, param.default)


def test_deleting_a_folder_removes_a_feature(tmp_path: Path) -> None:
    """No other module and no table names it."""
    source = tmp_path / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(source / "torchyard/features/diff")
    env = {**os.environ, "PYTHONPATH": f"{source}:{ROOT / 'farm/src'}"}

    def run(*words: str) -> str:
        argv = [sys.executable, "-P", *words]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    shown = run("-m", "torchyard", "--help")
    assert "  diff  " not in shown
    assert "  timings  " in shown
    assert "timings" in run("-m", "torchyard", "timings", "--help")
    assert "commands" in run("-m", "torchyard", "config", "schema", "timings")


def test_listing_commands_imports_no_use_case_and_no_slow_library() -> None:
    code = "import sys; from importlib import import_module; import torchyard.cli.main\n"
    code += "names = [import_module(name) for name in FEATURES]\n"
    code += "print([name for name in sys.modules if name.split('.')[0] in ('rich', 'msgspec') "
    code += "or name.split('.')[3:] in (['use_case'], ['report'], ['page'])])"
    features = sorted(feature_modules().values())
    done = subprocess.run(
        [sys.executable, "-c", code.replace("FEATURES", repr(features))],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"
