"""Find the job that a command names, and the conditions it runs in."""

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import msgspec

from torchyard.errors import StoreError, UsageError
from torchyard.host.files import absolute
from torchyard.host.locks import report_full_disk
from torchyard.host.own_files import make_own_directory
from torchyard.model.config import Config, Sandbox, SandboxKind
from torchyard.model.job_spec import JobSpec
from torchyard.model.recipe import Stage
from torchyard.model.values import UNDECODABLE
from torchyard.run.conditions import Conditions, sandbox_here
from torchyard.run.permissions import demanded_sandbox
from torchyard.workspace.locations import work_directory
from torchyard.workspace.toolchain_id import with_toolchain_id


def job_conditions(spec: JobSpec, file: str, work: str | None, sandbox: str | None) -> Conditions:
    """Return a job's directory, sandbox and other conditions."""
    asked = sandbox_here(spec.sandbox)
    kinds: dict[str | None, SandboxKind] = {kind: kind for kind in get_args(SandboxKind)}
    kind = kinds.get(sandbox, asked.kind)
    base = Path(absolute(file)).parent
    readable = tuple(str(base / path) for path in asked.readable)
    folder = Path(absolute(work or work_directory(file)))
    with report_full_disk(folder):
        make_own_directory(folder)
    return Conditions(
        work=folder,
        file=absolute(file),
        sandbox=Sandbox(kind=kind, root=asked.root, readable=readable),
        demanded=demanded_sandbox(),
    )


def find_job_spec(
    job: str | None, spec: str | None, file: str, changes: Sequence[str]
) -> tuple[JobSpec, Config | None]:
    """Return the job spec to run: from a file, or from the plan."""
    if (job is None) == (spec is None):
        msg = "which job?" if job is None else "name a job, or give --spec, but not both"
        raise UsageError(msg, hint="name one, as `torchyard plan --list jobs` lists them")
    if spec is not None:
        try:
            return msgspec.json.decode(Path(spec).read_bytes(), type=JobSpec), None
        except UNDECODABLE as error:
            msg = f"`{spec}` is not a job spec: {error}"
            raise StoreError(msg) from error
    from torchyard.config.load import load_config
    from torchyard.plan.build import make_plan_with
    from torchyard.plan.find import find_one_job
    from torchyard.plan.job_specs import make_job_spec

    config = load_config(file, tuple(changes))
    found = find_one_job(config, job or "")
    config = with_toolchain_id(config, file)
    plan = make_plan_with(config, found)
    return make_job_spec(plan, plan.find(found.stage or Stage.PACKAGE, found.path)), config
