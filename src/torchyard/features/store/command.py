"""`torchyard store`: inspect, copy and remove results."""

import click

from torchyard.cli.lazy_group import HelpSection, LazyGroup, in_section
from torchyard.cli.options import file_option, json_option, names_argument, store_option
from torchyard.cli.output import VALUES, reports
from torchyard.errors import UsageError
from torchyard.terminal.console import relay, say, show, write

VALUES["store-show"] = "torchyard.features.store.report:ResultsReport"

selectors_argument = names_argument("selectors", nargs=-1, metavar="[SELECTOR | FINGERPRINT]...")


@in_section(HelpSection.OPERATE)
@click.group("store", cls=LazyGroup)
def command() -> None:
    """Inspect, copy and remove results.

    Results are selected by their jobs (core:*, cu130-mkl/cp312) or the first digits of their
    fingerprints.
    """


@command.command("ls")
@selectors_argument
@file_option
@store_option
@reports("list_results")
def store_ls() -> None:
    """List results with their sizes, and the sizes of unshared files."""


@command.command("show")
@selectors_argument
@file_option
@store_option
@json_option
@click.option("--log", is_flag=True, help="Print the log of each result instead.")
@click.option("--zip", "archive", metavar="FILE", help="Write each log to a file in this zip.")
def show_results(
    *,
    selectors: tuple[str, ...],
    file: str,
    store: str | None,
    as_json: bool,
    log: bool,
    archive: str | None,
) -> None:
    """Show the origin, steps and files of results, or their logs."""
    if not selectors:
        msg = "which result?"
        raise UsageError(msg, hint="`torchyard store ls` lists them")
    from torchyard.features.store.report import store_show_text
    from torchyard.features.store.use_case import find_results, result_logs, zip_logs

    found = find_results(selectors, file=file, store=store)
    if archive:
        zip_logs(found, archive)
        say(f"{len(found.results):,} log{'s' * (len(found.results) != 1)} in {archive}")
    elif log:
        for pieces in result_logs(found):
            relay(pieces)
    elif as_json:
        from torchyard.terminal.json_output import encode

        write(encode(found))
    else:
        show(*store_show_text(found))


@command.command("get")
@selectors_argument
@file_option
@store_option
@click.option(
    "-o", "--output", "folder", required=True, metavar="DIR", help="Directory for the files."
)
def get(*, selectors: tuple[str, ...], file: str, store: str | None, folder: str) -> None:
    """Copy the files of results from the store to a directory."""
    from torchyard.features.store.use_case import take_files
    from torchyard.terminal.untrusted import printable

    paths = take_files(selectors, folder, file=file, store=store)
    write("".join(f"{printable(str(path))}\n" for path in paths))


@command.command("verify")
@file_option
@store_option
@click.option("--remove", is_flag=True, help="Remove damaged results, so that they are made again.")
@reports("verify_store")
def store_verify() -> None:
    """Read everything again, and compare it with its digests."""


@command.command("gc")
@file_option
@store_option
@click.option(
    "--plan",
    "plans",
    multiple=True,
    metavar="FILE",
    help="Keep results of these configurations, instead of --file's.",
)
@click.option("--grace", default="24 h", show_default=True, help="Keep everything newer than this.")
@click.option("--dry-run", is_flag=True, help="Only print what would be removed.")
@reports("collect_garbage")
def store_gc() -> None:
    """Remove results that no plan, channel or pin needs.

    Outdated work of failed jobs is removed, too. Other processes may write meanwhile.
    """


@command.command("pin")
@click.argument("name")
@selectors_argument
@file_option
@store_option
@click.option("--remove", is_flag=True, help="Remove the pin.")
def pin_results(
    *, name: str, selectors: tuple[str, ...], file: str, store: str | None, remove: bool
) -> None:
    """Keep results under a name, even if no plan needs them."""
    from torchyard.features.store.use_case import keep_results, release_results

    if remove and selectors:
        msg = f"--remove removes the whole pin `{name}`, and takes no selectors"
        raise UsageError(msg, hint=f"to keep fewer results, pin them anew as `{name}`")
    if remove:
        release_results(name, file=file, store=store)
        say(f"pin {name} is removed; the next `torchyard store gc` frees what only it kept")
        return
    kept = keep_results(name, selectors, file=file, store=store)
    say(f"pin {name} keeps {kept:,} result{'s' * (kept != 1)}")


@command.command("pull")
@click.argument("url")
@selectors_argument
@file_option
@store_option
@reports("pull_results")
def store_pull() -> None:
    """Copy results from another store into this one."""


@command.command("push")
@click.argument("url")
@selectors_argument
@file_option
@store_option
@reports("push_results")
def store_push() -> None:
    """Copy results from this store into another one."""
