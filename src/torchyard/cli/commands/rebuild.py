"""`torchyard rebuild`: make a package again, and compare."""

from pathlib import Path
from tempfile import TemporaryDirectory

import click

from torchyard.app.redact import redacting
from torchyard.app.run import job_conditions
from torchyard.cli.options import file_option, sandbox_option
from torchyard.config.credentials import take_credentials
from torchyard.errors import DifferenceError, HostError
from torchyard.host.signals import exit_on_sigterm
from torchyard.run.rebuild import borrow, carried_order, rebuild
from torchyard.store.store import Store
from torchyard.terminal.console import say, write
from torchyard.terminal.events import printer


@click.command("rebuild")
@click.argument("package")
@file_option
@click.option("--store", "store_url", metavar="URL", help="Take inputs from this store.")
@click.option("--work", metavar="DIR", help="Work there, and keep the new package.")
@sandbox_option
def command(
    *, package: str, file: str, store_url: str | None, work: str | None, sandbox: str | None
) -> None:
    """Build a package again from the job spec that it contains, and compare the two.

    Everything is built again, from the source on; with --store only what it does not have, and
    always the package. A source directory is looked for beside --file.
    """
    exit_on_sigterm()
    take_credentials()
    path = Path(package)
    if not path.is_file():
        msg = f"there is no file `{package}`"
        raise HostError(msg)
    order = carried_order(path)
    with TemporaryDirectory(prefix="torchyard-") as scratch:
        folder = work or scratch
        conditions = job_conditions(order, file, f"{folder}/work", sandbox)
        store, listen = Store.at(f"{folder}/store"), redacting(printer(say))
        if store_url:
            borrow(order, Store.at(store_url, make=False), store, listen)
        made = rebuild(path, order, store, conditions, listen)
    if made.differences:
        listed = "".join(f"\n  {line}" for line in made.differences)
        msg = f"`{package}` was made again, and is not the same:{listed}"
        hint = f"compare it with {made.made}" if work else "--work DIR keeps what was made"
        if order.sandbox.kind == "none":
            hint += "; without a sandbox, paths of the machine may be in it"
        raise DifferenceError(msg, hint=hint)
    write(f"{made.digest}  {package}: the same, byte for byte\n")
