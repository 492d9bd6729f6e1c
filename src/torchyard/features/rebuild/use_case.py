"""Make a package again from the job spec that it contains, as something that is not trusted."""

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
    """Make a package again, and compare the two.

    Args:
        package: A wheel, conda package or libtorch zip that torchyard made.
        file: A configuration; a source directory or archive is looked for beside it.
        store: Take inputs from this store.
        work: Work there, and keep the new package.
        yes: Do not ask before the commands are run.
        trust: Accept less than the sandbox `bwrap`; otherwise all steps run in it.
        sandbox: Use this sandbox, not that of the job spec.
        on_line: Is called with each line of the log.
        confirm: Asks whether the commands are run; raises if they are not.
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
        why = "the commands of a package are run only if that is agreed to"
        confirm("Run them?", why, "read them above; --yes runs them without a question")
    on_event = redacting(printer(on_line))
    with TemporaryDirectory(prefix="torchyard-") as temporary:
        folder = work or temporary
        conditions = job_conditions(spec, file, f"{folder}/work", sandbox)._replace(foreign=True)
        if not trust:
            conditions = conditions._replace(sandbox=Sandbox(kind="bwrap"))
        scratch = Store(Objects(f"{folder}/store"))  # its results are signed with no key
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
    """Refuse to run the steps of a package that is not trusted without a sandbox."""
    if sandbox not in (None, "bwrap"):
        msg = f"the steps of a package are not run with --sandbox {sandbox}"
        raise UsageError(msg, hint="leave it out; or say with --trust that you know them")
    if not can_confine():
        msg = "the steps of a package are run in a sandbox, and bubblewrap does not work here"
        raise HostError(msg, hint="install `bubblewrap`; or say with --trust that you know them")
