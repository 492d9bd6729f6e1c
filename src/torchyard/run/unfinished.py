"""Work of a job that ran out of time, kept in the store for a run on another machine.

It is optional: without it, a job starts from its first step.
"""

import platform

import msgspec

from torchyard.errors import StoreError
from torchyard.host.locks import remove_folder
from torchyard.host.process_id import boot_id
from torchyard.host.untrusted_tree import remove_tree
from torchyard.model.config import SandboxKind
from torchyard.model.result import CONTINUED, Result
from torchyard.run.workdir import JobState, WorkDir
from torchyard.store.store import Store
from torchyard.store.trees import Writer, fetch_file, fetch_tree
from torchyard.version import __version__

_FINISHED = "finished"
_PLACE = "place"


def keep_unfinished(workdir: WorkDir, store: Store) -> int | None:
    """Store the directory of a stopped job; return its number of finished steps.

    Return None if there is nothing to store: it was not started, or another process continues it.
    """
    state = workdir.state()
    begun = state.steps if state.unfinished is None else (*state.steps, state.unfinished)
    if not begun:
        return None
    with workdir.alone(wait=False) as alone:
        if not alone:
            return None
        writer = Writer(store)
        kept = Result(
            fingerprint=workdir.spec.task.fingerprint,
            spec=workdir.spec,
            tree=writer.add_tree(workdir.job),
            log=writer.add_file(workdir.log, "log"),
            steps=begun,
            facts={
                _FINISHED: str(len(state.steps)),
                **state.facts,
                _PLACE: str(workdir.folder),
            },
            machine=platform.node(),
            torchyard=__version__,
        )
        store.keep_unfinished(store.signed(kept, finished=False))
    return len(state.steps)


def restore_unfinished(workdir: WorkDir, store: Store, sandbox: SandboxKind) -> int:
    """Restore the kept directory of a job, unless this machine has one already.

    Return its number of finished steps. Without a sandbox, its files contain paths of its
    directory, so that must be at the same path.
    """
    kept = None if workdir.folder.exists() else store.find_unfinished(workdir.spec.task.fingerprint)
    if kept is None or kept.facts.get("sandbox") != sandbox:
        return 0
    if sandbox == "none" and kept.facts.get(_PLACE) != str(workdir.folder):
        return 0
    part = WorkDir(workdir.folder.parent, workdir.spec, f"{workdir.folder.name}.part")
    remove_tree(part.folder)
    try:
        fetch_tree(store, kept.tree, part.job)
        fetch_file(store, kept.log, part.log)
    except StoreError:
        remove_folder(part.folder)
        return 0
    number = kept.facts.get(_FINISHED, "")
    finished = int(number) if number.isdecimal() else 0
    state = JobState(
        sandbox=sandbox,
        steps=kept.steps[:finished],
        boot=boot_id(),
        is_continued=CONTINUED in kept.facts,
    )
    if left := kept.steps[finished:]:
        state = msgspec.structs.replace(state, unfinished=left[0])
    part.save(state)
    part.folder.rename(workdir.folder)
    return finished
