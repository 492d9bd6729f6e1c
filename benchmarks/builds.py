"""Builds whose jobs do nothing, to measure the overhead of torchyard itself.

    python builds.py make FOLDER     a store with a result of every job of a large plan
    python builds.py list FOLDER     lists those results, and does nothing else
    python builds.py build FOLDER    does what `torchyard build` does with that plan

The plan is larger than the shipped tables allow, so it is made from a matrix of its own; the rest
is the code of the command.
"""

import sys
from pathlib import Path

SIZES = (2, 25, 2, 6, 6)
"""11,501 jobs."""


def list_results(folder: Path) -> int:
    """List the results in the store with as little work as possible, as the baseline."""
    import obstore  # noqa: PLC0415 - its import belongs to what is measured
    from obstore.store import LocalStore  # noqa: PLC0415

    return sum(len(page) for page in obstore.list(LocalStore(folder), "results/"))


def make_store(folder: Path) -> None:
    from plans import config  # type: ignore[import-not-found]  # noqa: PLC0415

    from torchyard.model.canonical import canonical_json  # noqa: PLC0415
    from torchyard.model.result import File, Result  # noqa: PLC0415
    from torchyard.plan.build import make_plan  # noqa: PLC0415
    from torchyard.plan.job_specs import make_job_spec  # noqa: PLC0415
    from torchyard.store.keys import result_key  # noqa: PLC0415

    plan = make_plan(config(SIZES, rules=False))
    log = File(path="log.gz", digest="0" * 64, size=0, mtime=0)
    for job in plan.jobs:
        result = Result(fingerprint=job.fingerprint, spec=make_job_spec(plan, job), log=log)
        path = folder / result_key(job.fingerprint)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(canonical_json(result))


def build(folder: Path) -> None:
    from plans import config  # noqa: PLC0415

    import torchyard.cli.main  # noqa: F401, PLC0415 - every command has it
    from torchyard.cli.build_display import build_display, end_build  # noqa: PLC0415
    from torchyard.engines.builtin.local import LocalEngine  # noqa: PLC0415
    from torchyard.engines.engine import BuildContext  # noqa: PLC0415
    from torchyard.plan.build import make_plan  # noqa: PLC0415
    from torchyard.store.store import Store  # noqa: PLC0415
    from torchyard.workspace.watch import watching  # noqa: PLC0415

    plan = make_plan(config(SIZES, rules=False))
    home = folder.with_name("home")
    context = BuildContext(folder=home / "builds/1-1", home=home, file="torchyard.toml")
    store = Store.at(str(folder))
    engine = LocalEngine(jobs=2, slots=2, any_platform=True)
    with (
        build_display(store, home / "work", as_json=False) as listeners,
        watching(context.folder, listeners) as on_event,
    ):
        result = engine.build(plan, store, context, on_event)
    end_build(result, store, context.folder, as_json=False)


if __name__ == "__main__":
    what, place = sys.argv[1], Path(sys.argv[2])
    {"make": make_store, "list": list_results, "build": build}[what](place)
