"""`torchyard store`: inspect, copy and remove results."""

from datetime import timedelta
from pathlib import Path

import click
from rich.console import Group

from torchyard.cli.options import file_option, json_option, names_argument, store_url_option
from torchyard.config.load import load_config
from torchyard.errors import StoreError, UsageError
from torchyard.model.quantity import parse_duration, show_count, show_size
from torchyard.model.result import Result
from torchyard.package.zip.writer import Member, writing
from torchyard.plan.build import make_plan
from torchyard.plan.select import PlanSelection
from torchyard.reports.store import document as documents
from torchyard.reports.store import text as reports
from torchyard.reports.store.sharing import holdings
from torchyard.run.cleanup import tidy
from torchyard.store.gc import remove_garbage
from torchyard.store.pins import add_pin, list_pins, remove_pin
from torchyard.store.select import select_results, select_unfinished
from torchyard.store.store import Store, Unusable
from torchyard.store.transfer import copy, copy_unfinished
from torchyard.store.trees import fetch_all, read_result_log
from torchyard.store.verify import remove_broken, verify
from torchyard.terminal.console import relay, show, talk, warn, write
from torchyard.terminal.json_output import encode
from torchyard.terminal.untrusted import printable
from torchyard.workspace.locations import home_directory, open_store
from torchyard.workspace.toolchain_id import with_toolchain_id

selectors_argument = names_argument("selectors", nargs=-1, metavar="[SELECTOR | FINGERPRINT]...")

_WARNINGS = 10
"""How many manifests that can't be used are named."""


@click.group("store")
def command() -> None:
    """Inspect, copy and remove results.

    Results are chosen by selectors of their jobs (core:*, cu130-mkl/cp312) or by the first digits
    of their fingerprints.
    """


@command.command("ls")
@selectors_argument
@file_option
@store_url_option
@json_option
def list_results(
    *, selectors: tuple[str, ...], file: str, store_url: str | None, as_json: bool
) -> None:
    """List results with their sizes, and how much of each is its own."""
    store = open_store(store_url, file, make=False)
    unusable: Unusable = {}
    held, stored = holdings(select_results(store, selectors, unusable))
    named = {name: list(kept.results) for name, kept in list_pins(store)}
    if as_json:
        write(encode(documents.store_document(store.url, held, stored, named, unusable)))
    else:
        show(reports.store_report(store.url, held, stored, named))
    _warn_of(unusable)


def _warn_of(unusable: Unusable) -> None:
    """Name the manifests that can't be used, and what to do."""
    if unusable:
        said = [printable(str(error)) for _, error in sorted(unusable.items())]
        if more := said[_WARNINGS:]:
            said[_WARNINGS:] = [f"{show_count(len(more), 'more manifest')} can't be used"]
        warn(said)
        talk("hint: `torchyard store verify --remove` removes them, so that they are made again")


@command.command("show")
@selectors_argument
@file_option
@store_url_option
@json_option
@click.option("--log", is_flag=True, help="Print the log of each result instead.")
@click.option("--zip", "archive", metavar="FILE", help="Write each log to a file in this zip.")
def show_results(
    *,
    selectors: tuple[str, ...],
    file: str,
    store_url: str | None,
    as_json: bool,
    log: bool,
    archive: str | None,
) -> None:
    """Show where results come from, what each step cost, and their files; or their logs."""
    if not selectors:
        msg = "which result?"
        raise UsageError(msg, hint="`torchyard store ls` lists them")
    store = open_store(store_url, file, make=False)
    found = list(select_results(store, selectors))
    if archive:
        _zip_logs(store, found, Path(archive))
        talk(f"{show_count(len(found), 'log')} in {archive}")
    elif log:
        for result in found:
            relay(read_result_log(store, result))
    elif as_json:
        write(encode(documents.ResultsDocument(store=store.url, results=found)))
    else:
        show(Group(*(part for result in found for part in (reports.result_report(result), ""))))


def _zip_logs(store: Store, results: list[Result], archive: Path) -> None:
    """Write logs to a zip whose bytes depend on nothing else, each under its job's name."""
    logs = {f"{r.id.replace(':', '/')}-{r.fingerprint[:12]}.log": r for r in results}
    with writing(archive) as writer:
        writer.add(
            Member(name, b"".join(read_result_log(store, result)))
            for name, result in sorted(logs.items())
        )


@command.command("get")
@selectors_argument
@file_option
@store_url_option
@click.option(
    "-o", "--output", "folder", required=True, metavar="DIR", help="Where to put the files."
)
def get(*, selectors: tuple[str, ...], file: str, store_url: str | None, folder: str) -> None:
    """Take the files of results out of the store, into one directory."""
    store = open_store(store_url, file, make=False)
    paths = fetch_all(store, select_results(store, selectors), Path(folder))
    write("".join(f"{printable(str(path))}\n" for path in paths))


@command.command("verify")
@file_option
@store_url_option
@json_option
@click.option("--remove", is_flag=True, help="Remove what is damaged, so that it is made again.")
def verify_store(*, file: str, store_url: str | None, as_json: bool, remove: bool) -> None:
    """Read everything again, and compare it with its digests."""
    store = open_store(store_url, file, make=False)
    verdict = verify(store)
    if as_json:
        write(encode(documents.verify_document(store.url, verdict)))
    else:
        show(reports.verify_report(store.url, verdict))
    if remove:
        remove_broken(store, verdict)
        talk(f"removed {len(verdict.damaged):,} blobs and {len(verdict.broken):,} results")
    elif not verdict.is_clean:
        msg = f"the store `{store.url}` is damaged"
        raise StoreError(msg, hint="--remove removes what is damaged, so that it is made again")


@command.command("gc")
@file_option
@store_url_option
@json_option
@click.option(
    "--plan",
    "plans",
    multiple=True,
    metavar="FILE",
    help="Keep what these configurations ask for, in place of that of --file.",
)
@click.option("--grace", default="24 h", show_default=True, help="Keep everything newer than this.")
@click.option("--dry-run", is_flag=True, help="Only print what would be removed.")
def collect_garbage(
    *,
    file: str,
    store_url: str | None,
    as_json: bool,
    plans: tuple[str, ...],
    grace: str,
    dry_run: bool,
) -> None:
    """Remove results that no plan, channel or pin leads to, and work that failed and is outdated.

    Others may go on writing meanwhile.
    """
    try:
        age = timedelta(seconds=0 if grace == "0" else parse_duration(grace))
    except ValueError as error:
        raise UsageError(str(error)) from error
    store = open_store(store_url, file, make=False)
    kept = _fingerprints(plans or (file,), store)
    garbage = remove_garbage(store, kept, age, dry_run=dry_run)
    work = tidy(Path(home_directory(file), "work"), kept, age.total_seconds(), dry_run=dry_run)
    if as_json:
        write(encode(documents.garbage_document(store.url, garbage, work, dry_run=dry_run)))
    else:
        show(reports.garbage_report(store.url, garbage, work, dry_run=dry_run))
    if garbage.is_blind:
        warn(["no result and no blob is removed: a damaged manifest may name any of them"])
    _warn_of(garbage.unusable)


def _fingerprints(files: tuple[str, ...], store: Store) -> set[str]:
    """Return the fingerprints of all jobs in the files' plans, for any machine's toolchain."""
    found: set[str] = set()
    anywhere: set[str] = set()
    for file in files:
        config = load_config(file)
        here = with_toolchain_id(config, file)
        for subset in (None, *config.subsets):
            for known, planned in ((found, here), (anywhere, config)):
                plan = make_plan(planned, PlanSelection(subset))
                known.update(plan.fingerprints)
    if anywhere != found:
        usable = store.results(unusable={})  # the others are kept anyway
        found |= {r.fingerprint for r in usable if r.order.anywhere in anywhere}
    return found


@command.command("pin")
@click.argument("name")
@selectors_argument
@file_option
@store_url_option
def pin_results(*, name: str, selectors: tuple[str, ...], file: str, store_url: str | None) -> None:
    """Keep results under a name, whatever happens to the plans that made them."""
    store = open_store(store_url, file, make=False)
    made = add_pin(store, name, [result.fingerprint for result in select_results(store, selectors)])
    talk(f"pin {name} keeps {show_count(len(made.results), 'result')}")


@command.command("unpin")
@click.argument("name")
@file_option
@store_url_option
def unpin_results(*, name: str, file: str, store_url: str | None) -> None:
    """Remove a pin."""
    remove_pin(open_store(store_url, file, make=False), name)
    talk(f"pin {name} is gone; what only it kept goes with the next `torchyard store gc`")


@command.command("pull")
@click.argument("url")
@selectors_argument
@file_option
@store_url_option
@json_option
def pull(
    *, url: str, selectors: tuple[str, ...], file: str, store_url: str | None, as_json: bool
) -> None:
    """Copy results from another store into this one."""
    _transfer(Store.at(url, make=False), open_store(store_url, file), selectors, as_json=as_json)


@command.command("push")
@click.argument("url")
@selectors_argument
@file_option
@store_url_option
@json_option
def push(
    *, url: str, selectors: tuple[str, ...], file: str, store_url: str | None, as_json: bool
) -> None:
    """Copy results from this store into another one."""
    _transfer(open_store(store_url, file, make=False), Store.at(url), selectors, as_json=as_json)


def _transfer(source: Store, target: Store, selectors: tuple[str, ...], *, as_json: bool) -> None:
    done = copy(source, target, select_results(source, selectors))
    begun = copy_unfinished(source, target, select_unfinished(source, selectors))
    if as_json:
        document = documents.TransferDocument(
            source=source.url,
            target=target.url,
            copied=done.results,
            unfinished=begun.results,
            there=done.there,
            sent_bytes=done.sent + begun.sent,
        )
        write(encode(document))
    else:
        talk(
            f"{show_count(done.results, 'result')} copied ({show_size(done.sent)}), "
            f"{done.there:,} there already"
        )
        if begun.results:
            work = show_count(begun.results, "unfinished job")
            talk(f"{work} copied ({show_size(begun.sent)})")
