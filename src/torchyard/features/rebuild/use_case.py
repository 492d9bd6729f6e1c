"""Rebuild a package from the untrusted job spec in it."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from torchyard.config.credentials import take_credentials
from torchyard.errors import HostError, UsageError
from torchyard.features.rebuild.report import RebuildReport
from torchyard.host.bubblewrap import can_confine
from torchyard.host.signals import exit_on_sigterm
from torchyard.model.config import Sandbox
from torchyard.run.carried_spec import carried_spec, describe_spec
from torchyard.run.rebuild import borrow, rebuild
from torchyard.store.objects import Objects
from torchyard.store.store import Store
from torchyard.terminal.events import printer
from torchyard.terminal.untrusted import printable
from torchyard.workspace.progress import ignore_line
from torchyard.workspace.redact import redacting
from torchyard.workspace.run import job_conditions


def rebuild_package(
    package: str | Path,
    *,
    file: str = "torchyard.toml",
    store: str | None = None,
    work: str | None = None,
    yes: bool = False,
    trust: bool = False,
    sandbox: str | None = None,
    on_line: Callable[[str], None] = ignore_line,
    confirm: Callable[[str, str, str], None],
) -> RebuildReport:
    """Rebuild a package, and compare the two.

    Args:
        package: A wheel, conda package or libtorch zip that torchyard made.
        file: A configuration; a source directory or archive is looked up beside it.
        store: Take inputs from this store.
        work: Work there, and keep the new package.
        yes: Run the commands without a question.
        trust: Accept less than the sandbox `bwrap`; otherwise all steps run in it.
        sandbox: Use this sandbox, not the job spec's.
        on_line: Called with each line of the log.
        confirm: Asks whether to run the commands; raises if not.
    """
    exit_on_sigterm()
    take_credentials()
    path = Path(package)
    if not path.is_file():
        msg = f"there is no file `{package}`"
        raise HostError(msg)
    spec = carried_spec(path)
    if not trust:
        _refuse_unconfined(sandbox)
    on_line(f"{package} says that these commands made it:")
    for line in describe_spec(spec):
        on_line(printable(line))
    if not yes:
        why = "the commands of a package only run with your consent"
        confirm("Run them?", why, "read them above; --yes runs them without a question")
    on_event = redacting(printer(on_line))
    with TemporaryDirectory(prefix="torchyard-") as temporary:
        folder = work or temporary
        conditions = job_conditions(spec, file, f"{folder}/work", sandbox)._replace(foreign=True)
        if not trust:
            conditions = conditions._replace(sandbox=Sandbox(kind="bwrap"))
        scratch = Store(Objects(f"{folder}/store"))  # its results are not signed
        if store:
            borrow(spec, Store.at(store, make=False), scratch, on_event)
        done = rebuild(path, spec, scratch, conditions, on_event)
    return RebuildReport(
        package=str(package),
        sha256=done.digest,
        made=str(done.made) if work else None,
        sandbox=spec.sandbox.kind,
        differences=done.differences,
    )


def _refuse_unconfined(sandbox: str | None) -> None:
    """Refuse to run the steps of an untrusted package without a sandbox."""
    if sandbox not in (None, "bwrap"):
        msg = f"the steps of a package are not run with --sandbox {sandbox}"
        raise UsageError(msg, hint="remove it, or trust the steps with --trust")
    if not can_confine():
        msg = "the steps of a package are run in a sandbox, and bubblewrap does not work here"
        raise HostError(msg, hint="install `bubblewrap`, or trust the steps with --trust")
