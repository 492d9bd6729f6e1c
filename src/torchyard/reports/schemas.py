"""Everything that is printed for machines, by the name of its schema."""

from torchyard.model.event import AnyEvent
from torchyard.reports.check.document import CheckDocument, RulesDocument
from torchyard.reports.plan.document import ExplainDocument
from torchyard.reports.publish.document import PublishDocument
from torchyard.reports.repair.document import RepairDocument
from torchyard.reports.smoke.document import SmokeDocument
from torchyard.terminal.json_output import ErrorDocument

SCHEMAS: dict[str, object] = {
    "check": CheckDocument,
    "error": ErrorDocument,
    "explain": ExplainDocument,
    "explain-rule": RulesDocument,
    "publish": PublishDocument,
    "repair": RepairDocument,
    "smoke": SmokeDocument,
    "events": AnyEvent,
}
"""`events` describes one line of `build --json`, `run --json` and `status --json`."""
