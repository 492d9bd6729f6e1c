"""`@reports`: make commands that show a use case's value as text or JSON, or in files."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

import click
from click.decorators import FC

from torchyard.cli.options import confirm, json_option, refuse_options
from torchyard.errors import TorchyardError
from torchyard.terminal.console import say, show, write
from torchyard.terminal.progress import ProgressLine

if TYPE_CHECKING:  # slow to import
    from rich.console import RenderableType

REPORTS: dict[str, "Report"] = {}
"""The reports of all imported commands, by name: `store_gc`."""
CALLS: dict[str, "Report"] = {}
"""The use cases of imported commands that show no value, by name."""
VALUES: dict[str, str] = {}
"""Classes that commands read or write without a report, as `module:class`, by schema."""


_SHOWN = {"meter": ProgressLine, "on_line": say, "confirm": confirm}
"""Functions that use cases may take besides options: to show progress, and to ask."""


class Feature(Protocol):
    """A function of a feature: it takes options by name; reports also take the value."""

    def __call__(self, *values: object, **options: object) -> object: ...


class Report:
    """A command of a feature: its use case, and the functions that show its value.

    They are looked up by name in the modules of the feature's folder, on first use.
    """

    def __init__(self, package: str, name: str, use_case: str) -> None:
        self.name = name
        self._package = package
        self._use_case = use_case

    @classmethod
    def of(cls, function: FC, use_case: str) -> "Report":
        """Return the report of a decorated function."""
        package, _, module = function.__module__.rpartition(".")
        name = getattr(function, "__name__", "command")
        if name == "command":
            name = module.partition("_")[2] or package.rpartition(".")[2]
        return cls(package, name, use_case)

    def _function(self, module: str, name: str) -> Feature | None:
        found = getattr(import_module(f"{self._package}.{module}"), name, None)
        return cast("Feature | None", found)

    @property
    def use_case(self) -> Feature:
        """The function that does the work."""
        return cast("Feature", self._function("use_case", self._use_case))

    def writer(self, form: str) -> Feature:
        """Return the function that writes a form, such as `text` or `html`."""
        module = "report" if form == "text" else "page"
        return cast("Feature", self._function(module, f"{self.name}_{form}"))

    @property
    def value_type(self) -> object:
        """The class of the value, which the function for text takes."""
        return next(iter(inspect.signature(self.writer("text")).parameters.values())).annotation

    @property
    def error_function(self) -> Feature | None:
        """The function that returns why the command fails after its value is shown."""
        return self._function("report", f"{self.name}_error")


def _call(function: Feature, options: Mapping[str, object], *values: object) -> object:
    """Call a function with those options that are its parameters."""
    parameters = inspect.signature(function).parameters
    takes_all = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    chosen = {name: given for name, given in options.items() if takes_all or name in parameters}
    return function(*values, **chosen)


def reports(use_case: str, /, **files: str) -> Callable[[FC], FC]:
    """Make a command that calls a use case with its options, and shows the returned value.

    The use case is a function of `use_case.py` in the same folder. The command gets `--json`, and
    options with the help in `files`, which write a file. These functions show the value:

    - `NAME_text` of `report.py` yields tables and lines, or returns text to print unchanged.
    - `NAME_error` of `report.py` (optional) returns why the command then fails, or None.
    - `NAME_html` of `page.py` returns what `--html FILE` writes.

    NAME is taken from the decorated function, or if that is `command`, from `command_NAME.py` or
    the folder. Each function is called with the options that are its parameters; a use case may
    also take `meter`, `on_line`, `confirm`, and `for_json`: whether its value is printed as JSON.
    """

    def decorate(function: FC) -> FC:
        report = Report.of(function, use_case)
        REPORTS[report.name] = report

        @wraps(function)
        def command(*, as_json: bool, **options: object) -> None:
            ctx = click.get_current_context()
            if ctx.invoked_subcommand:  # of a group that also reports
                refuse_options(ctx)
                return
            paths = {form: options.pop(form) for form in files}
            value = _call(report.use_case, {**options, **_SHOWN, "for_json": as_json})
            for form, path in paths.items():
                if path:
                    _write_file(str(path), report.writer(form)(value))
            if as_json:
                from torchyard.terminal.json_output import encode

                write(encode(value))
            else:
                text = _call(report.writer("text"), options, value)
                if isinstance(text, str | bytes):
                    write(text)
                else:
                    show(*cast("Iterable[RenderableType]", text))
            error = report.error_function and _call(report.error_function, options, value)
            if isinstance(error, TorchyardError):
                raise error

        decorated = json_option(cast("FC", command))
        for form, description in reversed(files.items()):
            path = click.Path(dir_okay=False)
            option = click.option(f"--{form}", type=path, metavar="FILE", help=description)
            decorated = option(decorated)
        return decorated

    return decorate


def calls(use_case: str, /) -> Callable[[FC], FC]:
    """Make a command that calls a use case with its options, and prints the returned text.

    The use case may take `meter`, `on_line` and `confirm`, as with `@reports`. It may also take
    `on_event`, which prints events as lines, or as JSON if the command has `--json`; and
    `on_followed`, which does the same and ends the command when its output is closed.
    """

    def decorate(function: FC) -> FC:
        report = Report.of(function, use_case)
        CALLS[report.name] = report

        @wraps(function)
        def command(*, as_json: bool = False, **options: object) -> None:
            from torchyard.terminal.events import emit_event, printer, write_event

            lines = printer(say)
            on_event = emit_event if as_json else lines
            on_followed = write_event if as_json else lines
            shown = {**_SHOWN, "on_event": on_event, "on_followed": on_followed}
            text = _call(report.use_case, {**options, **shown})
            if isinstance(text, str) and text:
                write(text if text.endswith("\n") else f"{text}\n")

        return cast("FC", command)

    return decorate


def _write_file(path: str, written: object) -> None:
    data = written if isinstance(written, bytes) else str(written).encode()
    with open(path, "wb") as file:  # noqa: PTH123 - every command would pay for pathlib
        file.write(data)
    say(f"wrote {path}")
