"""`torchyard build`: the whole plan, on this machine or by another engine."""

from functools import partial
from pathlib import Path

import click

from torchyard.app.engines import LOCAL, find_engine
from torchyard.app.locations import absolute, cache_of, home_of, open_store
from torchyard.app.toolchain_id import with_toolchain_id
from torchyard.cli.options import (
    file_option,
    json_option,
    refuse_given,
    sandbox_option,
    set_option,
    skip_option,
    store_option,
    subset_option,
    work_option,
)
from torchyard.cli.watch import new_folder, watch
from torchyard.config.credentials import take_credentials
from torchyard.config.load import load_config
from torchyard.config.tables import load_tables
from torchyard.engines.engine import Options
from torchyard.errors import PlanError, UsageError
from torchyard.host.machine import platform_name, processors
from torchyard.model.config import Config
from torchyard.model.recipe import Stage
from torchyard.plan.build import make_plan
from torchyard.plan.graph import Plan
from torchyard.plan.select import Selection
from torchyard.store.store import Store
from torchyard.store.trees import fetch_all


@click.command("build")
@click.argument("select", nargs=-1)
@file_option
@set_option
@subset_option
@skip_option
@store_option
@work_option
@sandbox_option
@click.option(
    "--engine",
    metavar="NAME",
    default=LOCAL,
    show_default=True,
    help="Who builds: this machine, or what a plug-in brings, such as buildbot.",
)
@click.option("--farm", metavar="DIR", help="The master's directory, for --engine buildbot.")
@click.option(
    "--jobs", type=click.IntRange(1), help="Run so many jobs at once, at most one for each slot."
)
@click.option("--slots", type=click.IntRange(1), help="Run so many compilers at once, in all.")
@click.option("--keep-going", is_flag=True, help="After a failure do all that does not need it.")
@click.option("--output", "-o", metavar="DIR", help="Put the packages there when all is done.")
@click.option("--any-platform", is_flag=True, help="Build for other platforms than this one.")
@json_option
def command(
    *,
    select: tuple[str, ...],
    file: str,
    changes: tuple[str, ...],
    subset: str | None,
    skip: tuple[str, ...],
    store_url: str | None,
    work: str | None,
    sandbox: str | None,
    engine: str,
    farm: str | None,
    jobs: int | None,
    slots: int | None,
    keep_going: bool,
    output: str | None,
    any_platform: bool,
    as_json: bool,
) -> None:
    """Build the plan, or what SELECT names of it: a value (cu130), a cell or a job (core:*).

    Results that the store has are not made again. All jobs share one pool of compile slots, as
    many as there are processors, and fewer while memory is short. Ctrl-C stops cleanly, a second
    one at once; the same command goes on later. With --json, events are printed as they happen.
    """
    build = find_engine(engine)
    if engine == LOCAL:
        refuse_given({"--farm": farm}, "is for farms: --engine buildbot")
    else:
        ours = {"--work": work, "--sandbox": sandbox, "--jobs": jobs, "--slots": slots}
        refuse_given(ours, "is for the local engine")
    take_credentials()
    config = with_toolchain_id(load_config(file, changes), file)
    plan = make_plan(config, load_tables(), Selection(subset, select, skip))
    if engine == LOCAL:
        _refuse_foreign(plan, any_platform=any_platform)
    _refuse_inside(config, file, output)
    _refuse_proof(config, file)
    store = open_store(store_url, file, config)
    slots = slots or processors()
    options = Options(
        folder=new_folder(file),
        work=Path(absolute(work)) if work else Path(home_of(file), "work"),
        file=absolute(file),
        sandbox=sandbox,
        cache=cache_of(file, config),
        copies=config.copies,
        jobs=min(jobs or slots, slots),
        slots=slots,
        keep_going=keep_going,
        farm=Path(farm) if farm else None,
    )
    run = partial(build, plan, store, options)
    watch(run, store, options.folder, work=options.work, as_json=as_json)
    if output:
        _deliver(plan, store, Path(output))


def _refuse_foreign(plan: Plan, *, any_platform: bool) -> None:
    """Refuse what this machine can't be trusted to build."""
    here = platform_name()
    foreign = {job.scope[0] for job in plan.jobs if len(job.scope) > 1} - {here}
    if foreign and not any_platform:
        msg = f"this machine is {here}, and the plan is also for {', '.join(sorted(foreign))}"
        hint = f"choose: torchyard build {here}; or --any-platform if your steps can do that"
        raise PlanError(msg, hint=hint)


def _refuse_inside(config: Config, file: str, output: str | None) -> None:
    """Refuse to put packages where they would be source the next time."""
    if output and config.source.path is not None:
        source = Path(absolute(file)).parent / config.source.path
        if Path(absolute(output)).is_relative_to(source.resolve()):
            msg = f"`{output}` is inside the source directory, and would be part of the next build"
            raise UsageError(msg, hint="choose a directory beside it, or one under .torchyard")


def _refuse_proof(config: Config, file: str) -> None:
    """Refuse a policy or tests that are wrong at once, and not after hours of compiling."""
    from torchyard.checks.policy import load_policy, parse_policy
    from torchyard.checks.smoke.known_failures import load_known
    from torchyard.checks.smoke.suite import read_suite

    if Stage.CHECK not in config.steps and config.check.text:
        parse_policy(config.check.policy, config.check.text)
    elif Stage.CHECK not in config.steps:
        load_policy(config.check.policy)
    if Stage.SMOKE not in config.steps and config.smoke.folder:
        tests = Path(absolute(file)).parent / config.smoke.folder
        read_suite(tests)
        load_known(tests)


def _deliver(plan: Plan, store: Store, folder: Path) -> None:
    """Put the files of all packages into a directory."""
    packages = (job for job in plan.jobs if job.stage is Stage.PACKAGE)
    fetch_all(store, [store.get(job.fingerprint, job.identifier) for job in packages], folder)
