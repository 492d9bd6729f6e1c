"""Recipe `extension`: a project that is compiled against a torch release.

It has no steps yet: the file gives the commands of stages bindings and package.
"""

from torchyard.model.job_spec import JobSpec
from torchyard.model.step import Step


def steps(_order: JobSpec) -> tuple[Step, ...] | None:
    """Return None: the file has to give the steps."""
    return None


def environment(_order: JobSpec) -> dict[str, str]:
    """Return no variables."""
    return {}
