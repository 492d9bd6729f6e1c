"""Everything that is printed for machines, by the name of its schema."""

from torchyard.model.event import AnyEvent
from torchyard.reports.channel.document import CHANNEL_REPORTS
from torchyard.reports.check.document import CHECK_REPORTS
from torchyard.reports.compare.document import COMPARE_REPORTS
from torchyard.reports.coverage.document import COVERAGE_REPORTS
from torchyard.reports.index_check.document import AUDIT_REPORTS
from torchyard.reports.plan.document import REPORTS
from torchyard.reports.publish.document import PUBLISH_REPORTS
from torchyard.reports.repair.document import REPAIR_REPORTS
from torchyard.reports.smoke.document import SMOKE_REPORTS
from torchyard.reports.store.document import STORE_REPORTS
from torchyard.reports.toolchain.document import TOOLCHAIN_REPORTS
from torchyard.reports.which.document import WHICH_REPORTS

SCHEMAS: dict[str, object] = {
    **REPORTS,
    **PUBLISH_REPORTS,
    **REPAIR_REPORTS,
    **SMOKE_REPORTS,
    **STORE_REPORTS,
    **TOOLCHAIN_REPORTS,
    **CHECK_REPORTS,
    **AUDIT_REPORTS,
    **CHANNEL_REPORTS,
    **COMPARE_REPORTS,
    **COVERAGE_REPORTS,
    **WHICH_REPORTS,
    "events": AnyEvent,
}
"""`events` describes one line of `build --json`, `run --json` and `status --json`."""
