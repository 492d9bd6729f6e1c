"""`torchyard farm worker`: runs a worker on this machine."""

from pathlib import Path

import click

from torchyard.errors import HostError, UsageError
from torchyard_farm.cli.options import farm_argument


@click.command("worker")
@farm_argument
@click.option(
    "--master",
    "masters",
    required=True,
    multiple=True,
    metavar="HOST:PORT",
    help="Address of the master; of several, the first that answers is used.",
)
@click.option("--name", required=True, help="Name of this machine in farm.toml.")
@click.option("--slots", type=click.IntRange(1), default=1, help="As in farm.toml.")
@click.option(
    "--password-file",
    required=True,
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Copy of the file of this name in the master's directory `secrets`.",
)
@click.option(
    "--ca",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Copy of the master's tls/ca.pem; the default is the system's authorities.",
)
@click.option(
    "--tls/--no-tls", default=None, help="Encrypt; the default unless the address is loopback."
)
@click.option("--publish", is_flag=True, help="Run publish jobs only.")
@click.option(
    "--credentials",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with credentials for the store or to publish; the default is the environment.",
)
@click.option(
    "--cache",
    metavar="PLACE",
    help="Compile cache for jobs that use one: a directory, redis://… or s3://….",
)
@click.option(
    "--demand-sandbox",
    is_flag=True,
    help="Run every job in the sandbox bwrap, overriding its project.",
)
@click.option(
    "--root",
    "roots",
    multiple=True,
    metavar="PLACE",
    type=click.Path(exists=True, path_type=Path, resolve_path=True),
    help="Root for jobs that were planned for it: a directory, an archive or an OCI layout.",
)
@click.option(
    "--idle", metavar="TIME", help="Stop when no job has run for this long, such as '10 min'."
)
def command(
    *,
    folder: Path,
    masters: tuple[str, ...],
    name: str,
    slots: int,
    password_file: Path,
    ca: Path | None,
    tls: bool | None,
    publish: bool,
    credentials: Path | None,
    cache: str | None,
    demand_sandbox: bool,
    roots: tuple[Path, ...],
    idle: str | None,
) -> None:
    """Work for a master, in DIR, until a signal stops it.

    A lost connection is opened again. It exits if the master can't be trusted, or does not know
    this worker.
    """
    from torchyard.host.own_files import make_own_directory
    from torchyard.host.system_view import sandbox_fault
    from torchyard.model.quantity import parse_duration
    from torchyard.model.recipe import Stage
    from torchyard.toolchain.cache import check_cache
    from torchyard_farm.settings.farm import parse_address, worker_names
    from torchyard_farm.settings.tls import install_authorities
    from torchyard_farm.worker.commands import install_job_command
    from torchyard_farm.worker.credentials import take_worker_credentials
    from torchyard_farm.worker.process import MasterLogin, run_workers

    secrets = take_worker_credentials(credentials)
    try:
        addresses = list(map(parse_address, masters))
        patience = None if idle is None else parse_duration(idle)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if tls is False and ca is not None:
        msg = "--ca is of no use with --no-tls"
        raise UsageError(msg, hint="leave one of them out")
    if demand_sandbox and (fault := sandbox_fault()):
        msg = f"this machine can't run jobs in a sandbox: {fault}"
        raise HostError(msg, hint="install `bubblewrap`, and let users create namespaces")
    if cache is not None:
        cache = cache if "://" in cache else str(Path(cache).absolute())
        check_cache(cache)
    make_own_directory(folder)
    authorities = None
    if ca is not None:
        authorities = folder.resolve() / "trust"
        install_authorities(ca, authorities)
    install_job_command(
        [stage for stage in Stage if (stage is Stage.PUBLISH) == publish],
        secrets,
        cache,
        "bwrap" if demand_sandbox else None,
        roots,
    )
    password = password_file.read_text(encoding="utf-8").strip()
    logins = []
    for address in addresses:
        encrypted = (ca is not None or not address.is_loopback) if tls is None else tls
        logins.append(MasterLogin(address, password, tls=encrypted, authorities=authorities))
    run_workers(folder.resolve(), logins, list(worker_names(name, slots)), patience)
