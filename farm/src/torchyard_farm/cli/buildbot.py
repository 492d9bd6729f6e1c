"""The engine `buildbot`: submits a plan to a farm, and follows it as if it were built here."""

from pathlib import Path
from typing import Annotated

import msgspec

from torchyard.engines.engine import BuildContext
from torchyard.errors import UsageError
from torchyard.model.build_result import BuildResult
from torchyard.model.event import Listener
from torchyard.plan.graph import Plan
from torchyard.store.store import Store


class BuildbotEngine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Runs jobs on the workers of a farm."""

    farm: Annotated[
        str | None,
        msgspec.Meta(description="The master's directory.", extra={"metavar": "DIR"}),
    ] = None

    def build(
        self, plan: Plan, store: Store, context: BuildContext, on_event: Listener, /
    ) -> BuildResult:
        """Submit the jobs of a plan that are not in the store, and follow them."""
        from torchyard.workspace.clock import current_moment
        from torchyard_farm.cli.engine import follow_plan
        from torchyard_farm.cli.submission import draft_from_plan, submit_draft
        from torchyard_farm.settings.farm import load_farm

        if self.farm is None:
            msg = "the engine `buildbot` needs a farm"
            raise UsageError(msg, hint="pass the directory of its master: --farm DIR")
        farm = Path(self.farm)
        draft = draft_from_plan(plan, store, current_moment())
        submitted = submit_draft(draft, context.file, farm, load_farm(farm))
        return follow_plan(submitted, store, farm, context.folder, on_event)
