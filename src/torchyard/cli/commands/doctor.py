"""`torchyard doctor`: inspect this machine before a build."""

from functools import partial
from typing import TYPE_CHECKING

import click

from torchyard.cli.options import (
    check_name,
    json_option,
    refuse_given,
    request_options,
    selector_argument,
    work_option,
)
from torchyard.compute.registry import look_up
from torchyard.config.tables import load_tables
from torchyard.errors import HostError, UsageError
from torchyard.host.files import exists
from torchyard.model.quantity import show_count
from torchyard.terminal.console import say, show, write

if TYPE_CHECKING:
    from torchyard.engines.admission import Examination
    from torchyard.workspace.build_request import BuildRequest

_TREE = ("CMakeLists.txt", "setup.py", "pyproject.toml")


@click.command("doctor")
@selector_argument
@click.option("--source", metavar="DIR", help="For a build of this tree by hand, in this shell.")
@click.option("--compute", metavar="NAME", help="With --source: for this, such as cu130 or cpu.")
@click.option("--blas", metavar="NAME", help="With --source: with this BLAS, such as mkl.")
@click.option("--fix", is_flag=True, help="Run the commands that change only tree or environment.")
@request_options
@work_option
@json_option
def command(
    *,
    request: "BuildRequest",
    source: str | None,
    compute: str | None,
    blas: str | None,
    fix: bool,
    work: str | None,
    as_json: bool,
) -> None:
    """Inspect this machine for a build, and say what would go wrong, and how to mend it.

    SELECTOR names cells of the file; without it, all cells of this platform. It looks for what
    `build` would refuse to start without, for jobs that have no result in the store. A job has an
    environment of its own. With --source, or in a directory with a source tree and no file, it is
    the environment of this shell that is inspected.

    What is missing for a build is an error, and the exit code is 7.
    """
    if source is None and not request.select and not exists(request.file):
        source = _tree_here(request.file)
    if source is None:
        refuse_given({"--compute": compute, "--blas": blas}, "is only for --source")
        from torchyard.app.doctor import examine_cells

        look = partial(examine_cells, request, work)
    else:
        refuse_given(
            {"SELECTOR": request.select}, "is built by jobs, and --source is for a build by hand"
        )
        look = partial(_look_at_source, source, compute or "", blas or "")
    examination = look()
    if fix:
        from torchyard.app.doctor import mend

        if mend(examination, say):
            examination = look()
    _print(examination, as_json=as_json)
    if examination.errors:
        msg = f"the machine is not ready: {show_count(len(examination.errors), 'error')}"
        raise HostError(msg, hint="type the commands above, and run it again")


def _look_at_source(source: str, compute: str, blas: str) -> "Examination":
    from torchyard.app.doctor import examine_source

    look_up([compute])
    tables = load_tables()
    check_name(compute, ("", *tables.compute), "compute platform")
    check_name(blas, ("", *tables.blas), "BLAS")
    return examine_source(source, tables, compute=compute, blas=blas)


def _tree_here(file: str) -> str:
    """Return the current directory, if it has a source tree."""
    if any(map(exists, _TREE)):
        return "."
    msg = f"there is no `{file}` here, and no source tree"
    raise UsageError(msg, hint="name a checkout: torchyard doctor --source DIR")


def _print(examination: "Examination", *, as_json: bool) -> None:
    from torchyard.reports.doctor.document import DoctorDocument
    from torchyard.reports.doctor.text import cure_lines, doctor_report
    from torchyard.terminal.json_output import encode

    document = DoctorDocument(
        title=examination.title,
        platform=examination.platform,
        errors=len(examination.errors),
        findings=examination.findings,
        seen=examination.seen,
    )
    if as_json:
        write(encode(document))
        return
    show(doctor_report(document))
    write("".join(f"{line}\n" for line in cure_lines(document)))  # to be copied, so never wrapped
