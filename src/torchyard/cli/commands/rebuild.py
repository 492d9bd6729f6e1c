"""`torchyard rebuild`: make a package again, and compare."""

from pathlib import Path
from tempfile import TemporaryDirectory

import click

from torchyard.app.rebuild import RebuildRequest, rebuild_package, refuse_unconfined
from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.options import confirm, file_option, sandbox_option
from torchyard.config.credentials import take_credentials
from torchyard.errors import DifferenceError, HostError
from torchyard.host.signals import exit_on_sigterm
from torchyard.model.job_spec import JobSpec
from torchyard.run.carried_spec import carried_spec, describe_spec
from torchyard.terminal.console import say, write
from torchyard.terminal.events import printer
from torchyard.terminal.untrusted import printable
from torchyard.workspace.redact import redacting


@in_section(HelpSection.VERIFY)
@click.command("rebuild")
@click.argument("package")
@file_option
@click.option("--store", "store_url", metavar="URL", help="Take inputs from this store.")
@click.option("--work", metavar="DIR", help="Work there, and keep the new package.")
@click.option("--yes", is_flag=True, help="Do not ask before the commands are run.")
@click.option("--trust", is_flag=True, help="Accept less than the sandbox `bwrap`.")
@sandbox_option
def command(
    *,
    package: str,
    file: str,
    store_url: str | None,
    work: str | None,
    yes: bool,
    trust: bool,
    sandbox: str | None,
) -> None:
    """Build a package again, and compare the two byte for byte.

    The commands are those of the job spec that the package contains. They are shown first, and run
    in the sandbox `bwrap`, without variables of yours. Everything is built again, from the source
    on; with --store only what it does not have, and always the package. A source directory or
    archive is looked for beside --file.
    """
    exit_on_sigterm()
    take_credentials()
    path = Path(package)
    if not path.is_file():
        msg = f"there is no file `{package}`"
        raise HostError(msg)
    spec = carried_spec(path)
    refuse_unconfined(sandbox, trusted=trust)
    _ask(package, spec, is_agreed=yes)
    with TemporaryDirectory(prefix="torchyard-") as scratch:
        request = RebuildRequest(
            package=path,
            spec=spec,
            file=file,
            folder=work or scratch,
            sandbox=sandbox,
            store=store_url,
            trusted=trust,
        )
        made = rebuild_package(request, redacting(printer(say)))
    if made.differences:
        listed = "".join(f"\n  {line}" for line in made.differences)
        msg = f"`{package}` was made again, and is not the same:{listed}"
        hint = f"compare it with {made.made}" if work else "--work DIR keeps what was made"
        if spec.sandbox.kind == "none":
            hint += "; without a sandbox, paths of the machine may be in it"
        raise DifferenceError(msg, hint=hint)
    write(f"{made.digest}  {package}: the same, byte for byte\n")


def _ask(package: str, spec: JobSpec, *, is_agreed: bool) -> None:
    """Show what would be run, and ask whether that is wanted."""
    say(f"{package} says that these commands made it:")
    for line in describe_spec(spec):
        say(printable(line))
    if not is_agreed:
        msg = "the commands of a package are run only if that is agreed to"
        confirm("Run them?", msg, "read them above; --yes runs them without a question")
