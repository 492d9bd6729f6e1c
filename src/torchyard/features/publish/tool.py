"""`torchyard tool publish`: the step of a publish job."""

from pathlib import Path

import msgspec

from torchyard.checks.policies import load_policy, parse_policy
from torchyard.config.credentials import take_credentials
from torchyard.features.publish.report import publish_text
from torchyard.features.publish.use_case import publish_request
from torchyard.model.conda_output import outputs_of
from torchyard.model.config import SandboxDemand, SmokeDemand
from torchyard.model.job_spec import JobSpec
from torchyard.publish.gates import Demands
from torchyard.publish.plan_results import PlanResults
from torchyard.publish.submit import PublishRequest
from torchyard.recipes.publishing import PUBLISHED, TRUSTED
from torchyard.store.makers import Trust
from torchyard.terminal.console import show
from torchyard.terminal.json_output import encode
from torchyard.terminal.progress import ProgressLine


def publish_tool(inputs: Path, *, spec: JobSpec, url: str, to: Path) -> None:
    """Publish all packages of a plan, which are inputs, and write a report."""
    take_credentials()
    task = spec.task
    policies = [parse_policy(name, text) for name, text in task.table("policy").items()]
    request = PublishRequest(
        paths=(),
        results=PlanResults(inputs, task.label, outputs=outputs_of(task.table("outputs"))),
        trust=msgspec.json.decode((inputs / TRUSTED).read_bytes(), type=Trust | None),
        policy=policies[0] if policies else load_policy(task.text("policy")),
        demands=Demands(
            external=tuple(task.words("external")),
            upstream=tuple(task.words("upstream")),
            smoke=msgspec.convert(task.text("smoke") or "planned", SmokeDemand),
            sandbox=msgspec.convert(task.text("sandbox") or "any", SandboxDemand),
        ),
        name=task.text("channel"),
        grouping="compute-blas" if task.text("variants") == "compute-blas" else "compute",
    )
    report = publish_request(url, request, ProgressLine)
    (to / PUBLISHED).write_bytes(encode(report))
    show(*publish_text(report))
