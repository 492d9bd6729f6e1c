"""`torchyard farm daily`: tests the packages of a channel."""

from pathlib import Path

import click

from torchyard_farm.cli.options import due_option, farm_argument


@click.command("daily")
@farm_argument
@click.argument("name")
@due_option
def command(*, folder: Path, name: str, due: str | None) -> None:
    """Plan the trial [daily.NAME] of farm.toml, and print its name.

    Each file of the channel is a job: it is installed as by users, and tested. The master runs this
    command when the trial is due.
    """
    from torchyard.config.credentials import take_credentials
    from torchyard.config.load import load_config
    from torchyard.host.detached import folder_lock
    from torchyard.model.quantity import show_count
    from torchyard.publish.select import choose, parse_selection
    from torchyard.publish.smoke_targets import newest
    from torchyard.terminal.console import say, write
    from torchyard.workspace.clock import current_moment
    from torchyard.workspace.locations import open_channel, open_store
    from torchyard_farm.cli.submission import refuse_impossible
    from torchyard_farm.scheduling.job_classes import machines_by_class
    from torchyard_farm.scheduling.plans import FOLDER, Plans, plan_moment
    from torchyard_farm.scheduling.trials import ChannelTrial, trial_plan
    from torchyard_farm.settings.farm import load_farm
    from torchyard_farm.settings.schedules import find_schedule

    farm = load_farm(folder)
    daily = find_schedule(name, farm.dailies, "daily")
    file, moment, plans = str(folder / farm.file), due or current_moment(), Plans(folder)
    take_credentials()
    config = load_config(file)
    with folder_lock(folder / FOLDER):
        for last in plans.of(name)[:1]:
            if plan_moment(last) == moment.replace("-", "").replace(":", ""):
                say(f"it is planned already: {last}")
                return
        channel = open_channel(daily.channel, file)
        chosen = newest(choose(channel, channel.head(), parse_selection(daily.select)))
        trial = ChannelTrial(daily, config, moment, open_store(None, file, config).url)
        plan, left_out = trial_plan(trial, chosen, machines_by_class(farm.machines))
        refuse_impossible(plan, farm)
        for kind, count in left_out.items():
            say(f"no machine can do jobs of class {kind}: skipped {show_count(count, 'package')}")
        if not plan.jobs:
            say("there is nothing to test")
            return
        plans.add(plan)
    say(f"{show_count(len(plan.jobs), 'package')} will be tested")
    write(f"{plan.id}\n")
