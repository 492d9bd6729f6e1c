"""Make a package again from the spec that it contains, as something that is not trusted."""

from pathlib import Path
from typing import NamedTuple

from torchyard.errors import HostError, UsageError
from torchyard.host.bubblewrap import can_confine
from torchyard.model.config import Sandbox
from torchyard.model.event import Listener
from torchyard.model.job_spec import JobSpec
from torchyard.run.rebuild import RebuiltPackage, borrow, rebuild
from torchyard.store.objects import Objects
from torchyard.store.store import Store
from torchyard.workspace.run import job_conditions


class RebuildRequest(NamedTuple):
    """What is made again, where, and how far it is trusted.

    Unless it is trusted, all steps run in a sandbox, whatever the package or `sandbox` says.
    """

    package: Path
    spec: JobSpec
    file: str
    folder: str
    sandbox: str | None = None
    store: str | None = None
    trusted: bool = False


def refuse_unconfined(sandbox: str | None, *, trusted: bool) -> None:
    """Refuse to run the steps of a package that is not trusted without a sandbox."""
    if trusted:
        return
    if sandbox not in (None, "bwrap"):
        msg = f"the steps of a package are not run with --sandbox {sandbox}"
        raise UsageError(msg, hint="leave it out; or say with --trust that you know them")
    if not can_confine():
        msg = "the steps of a package are run in a sandbox, and bubblewrap does not work here"
        raise HostError(msg, hint="install `bubblewrap`; or say with --trust that you know them")


def rebuild_package(request: RebuildRequest, on_event: Listener) -> RebuiltPackage:
    """Make a package again, and compare the two."""
    refuse_unconfined(request.sandbox, trusted=request.trusted)
    spec, folder = request.spec, request.folder
    conditions = job_conditions(spec, request.file, f"{folder}/work", request.sandbox)
    if not request.trusted:
        conditions = conditions._replace(sandbox=Sandbox(kind="bwrap"))
    scratch = Store(Objects(f"{folder}/store"))  # its results are signed with no key
    if request.store:
        borrow(spec, Store.at(request.store, make=False), scratch, on_event)
    return rebuild(request.package, spec, scratch, conditions._replace(foreign=True), on_event)
