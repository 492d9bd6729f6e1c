"""`torchyard farm worker`: this machine works for a master."""

from pathlib import Path

import click

from torchyard.errors import UsageError
from torchyard_farm.cli.options import farm_argument


@click.command("worker")
@farm_argument
@click.option(
    "--master",
    "masters",
    required=True,
    multiple=True,
    metavar="HOST:PORT",
    help="Where the master listens; of several, one that answers.",
)
@click.option("--name", required=True, help="What farm.toml calls this machine.")
@click.option("--slots", type=click.IntRange(1), default=1, help="As in farm.toml.")
@click.option(
    "--password-file",
    required=True,
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A copy of the file of this name in the master's directory `secrets`.",
)
@click.option(
    "--ca",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A copy of tls/ca.pem, by which the master is known. Without it: the system's own.",
)
@click.option(
    "--tls/--no-tls", default=None, help="Encrypt. Usual for all but this machine's own address."
)
@click.option("--publish", is_flag=True, help="Do publish jobs, and no others.")
@click.option(
    "--credentials",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Passwords for the store, or to publish; else those in the environment are taken.",
)
@click.option(
    "--cache",
    metavar="PLACE",
    help="Compile cache of jobs that use one: a directory, redis://… or s3://….",
)
@click.option(
    "--idle", metavar="TIME", help="End when no job has run for so long, such as '10 min'."
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
    idle: str | None,
) -> None:
    """Work for a master, in DIR, until it is stopped by a signal.

    Should the connection break, it is made again. A master that can't be trusted, or does not
    know this worker, ends it.
    """
    from torchyard.model.quantity import parse_duration
    from torchyard.model.recipe import Stage
    from torchyard.toolchain.cache import check
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
        msg = "--no-tls leaves no use for --ca"
        raise UsageError(msg, hint="leave one of them out")
    if cache is not None:
        cache = cache if "://" in cache else str(Path(cache).absolute())
        check(cache)
    folder.mkdir(parents=True, exist_ok=True)
    authorities = None
    if ca is not None:
        authorities = folder.resolve() / "trust"
        install_authorities(ca, authorities)
    install_job_command(
        [stage for stage in Stage if (stage is Stage.PUBLISH) == publish], secrets, cache
    )
    password = password_file.read_text(encoding="utf-8").strip()
    logins = []
    for address in addresses:
        encrypted = (ca is not None or not address.is_loopback) if tls is None else tls
        logins.append(MasterLogin(address, password, tls=encrypted, authorities=authorities))
    run_workers(folder.resolve(), logins, list(worker_names(name, slots)), patience)
