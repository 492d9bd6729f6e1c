"""Everything that is printed for machines, by the name of its schema."""

from torchyard.model.event import AnyEvent
from torchyard.reports.check.document import CheckDocument, RulesDocument
from torchyard.reports.ci.document import (
    CiExplainDocument,
    CiFilesDocument,
    CiImpactDocument,
)
from torchyard.reports.develop.document import DevelopDocument
from torchyard.reports.environment.document import EnvironmentDocument
from torchyard.reports.plan.document import (
    ConfigDocument,
    DiffDocument,
    ExplainDocument,
    PlanDocument,
)
from torchyard.reports.publish.document import PublishDocument
from torchyard.reports.repair.document import RepairDocument
from torchyard.reports.smoke.document import SmokeDocument
from torchyard.terminal.json_output import ErrorDocument

SCHEMAS: dict[str, object] = {
    "check": CheckDocument,
    "ci-explain": CiExplainDocument,
    "ci-files": CiFilesDocument,
    "ci-impact": CiImpactDocument,
    "config-show": ConfigDocument,
    "develop-build": DevelopDocument,
    "env": EnvironmentDocument,
    "error": ErrorDocument,
    "explain": ExplainDocument,
    "explain-rule": RulesDocument,
    "plan": PlanDocument,
    "plan-diff": DiffDocument,
    "publish": PublishDocument,
    "repair": RepairDocument,
    "smoke": SmokeDocument,
    "events": AnyEvent,
}
"""`events` describes one line of `build --json`, `run --json` and `status --json`."""
