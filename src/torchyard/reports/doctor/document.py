"""What `torchyard doctor` prints with `--json`."""

from typing import Literal

from torchyard.doctor.check import MachineFinding, MachineSighting
from torchyard.model.values import Reported


class DoctorDocument(Reported, kw_only=True):
    """`torchyard doctor --json`: what is wrong, the worst first, and what was seen."""

    version: Literal[1] = 1
    title: str
    platform: str
    errors: int
    findings: list[MachineFinding]
    seen: list[MachineSighting]
