"""Everything that is printed for machines, by the name of its schema."""

from torchyard.inspect.audit_documents import AUDIT_REPORTS
from torchyard.inspect.channel_documents import CHANNEL_REPORTS
from torchyard.inspect.check_documents import CHECK_REPORTS
from torchyard.inspect.compare_documents import COMPARE_REPORTS
from torchyard.inspect.coverage_documents import COVERAGE_REPORTS
from torchyard.inspect.documents import REPORTS
from torchyard.inspect.publish_documents import PUBLISH_REPORTS
from torchyard.inspect.repair_documents import REPAIR_REPORTS
from torchyard.inspect.smoke_documents import SMOKE_REPORTS
from torchyard.inspect.store_documents import STORE_REPORTS
from torchyard.inspect.toolchain_documents import TOOLCHAIN_REPORTS
from torchyard.inspect.which_documents import WHICH_REPORTS
from torchyard.model.event import Happening

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
    "events": Happening,
}
"""`events` describes one line of `build --json`, `run --json` and `status --json`."""
