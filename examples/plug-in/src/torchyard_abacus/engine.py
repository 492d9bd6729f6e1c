"""An engine: one job at a time, on this machine."""

from typing import Annotated

from msgspec import Meta, Struct

from torchyard.engines.builtin.local import LocalEngine
from torchyard.engines.engine import BuildContext
from torchyard.model.build_result import BuildResult
from torchyard.model.event import Listener, Noted
from torchyard.plan.graph import Plan
from torchyard.store.store import Store


class InOrderEngine(Struct, frozen=True, kw_only=True):
    """Builds with the local engine, and says how many jobs there are."""

    greeting: Annotated[str, Meta(description="What to say first.")] = "one by one"

    def build(
        self, plan: Plan, store: Store, context: BuildContext, on_event: Listener, /
    ) -> BuildResult:
        """Build all jobs of a plan that are not in the store."""
        on_event(Noted(text=f"{self.greeting}: {len(plan)} jobs"))
        return LocalEngine(jobs=1).build(plan, store, context, on_event)
