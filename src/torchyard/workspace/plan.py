"""Plan the packages of a file."""

from collections.abc import Sequence
from pathlib import Path

from torchyard.config.load import load_config
from torchyard.host.files import absolute
from torchyard.model.config import Config
from torchyard.model.lock import BuildLock
from torchyard.model.recipe import Stage
from torchyard.plan.graph import Plan
from torchyard.plan.select import PlanSelection
from torchyard.workspace.toolchain_id import with_toolchain_id


def plan_packages(
    file: str = "torchyard.toml",
    *,
    changes: Sequence[str] = (),
    subset: str | None = None,
    select: Sequence[str] = (),
    skip: Sequence[str] = (),
    lock: BuildLock | None = None,
) -> Plan:
    """Return the plan of a file: its packages, and the jobs that make them; build nothing.

    Args:
        file: The configuration.
        changes: Changes to it, each as `KEY=VALUE`: `project.version=2.14.1`.
        subset: A named part of the matrix.
        select: Words of a selector: values (`cu130`), cells or jobs (`core:*`); none selects all.
        skip: Selectors of cells and jobs to leave out.
        lock: Build environments of an extension, instead of the file's lock.
    """
    from torchyard.plan.build import make_plan

    config = with_toolchain_id(load_config(file, tuple(changes), lock=lock), file)
    return make_plan(config, PlanSelection(subset, tuple(select), tuple(skip)))


def refuse_proof(config: Config, file: str) -> None:
    """Refuse a wrong policy or wrong tests now, not after hours of compiling."""
    from torchyard.checks.policy import is_shipped

    check = config.check
    if Stage.CHECK not in config.steps and (check.text or not is_shipped(check.policy)):
        from torchyard.checks.policies import load_policy, parse_policy

        parse_policy(check.policy, check.text) if check.text else load_policy(check.policy)
    if Stage.SMOKE not in config.steps and config.smoke.folder:
        from torchyard.smoke.known_failures import load_known
        from torchyard.smoke.suite import read_suite

        tests = Path(absolute(file)).parent / config.smoke.folder
        read_suite(tests)
        load_known(tests)
