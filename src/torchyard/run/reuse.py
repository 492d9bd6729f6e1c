"""Jobs whose inputs differ from another's only in files that it does not read: they are not run."""

import uuid
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from msgspec.structs import replace

from torchyard.config.recipes import find_recipe
from torchyard.host.syscall_filter import filter_program
from torchyard.model.job_spec import JobSpec, Task
from torchyard.model.reads import COMMIT, InputFiles, carry, commit_file, spec_name
from torchyard.model.recipe import Stage
from torchyard.model.result import SAME_AS, Result, Tree
from torchyard.recipes import compiles_by_recipe, steps_of
from torchyard.run.conditions import Conditions
from torchyard.run.reading import ReadWatch
from torchyard.run.sandbox import Enclosure, enclose
from torchyard.run.workdir import WorkDir
from torchyard.store.gc_lease import GcWatch
from torchyard.store.keys import blob_key, result_key
from torchyard.store.objects import Identity
from torchyard.store.same_reads import find_same, remember_reads
from torchyard.store.store import Store

_SHOWING = ("bind", "bind-try")
"""How options of bubblewrap end that show a path of the machine, which is their next word."""


def needed_of(tree: Tree, made: Task, user: Task) -> Tree:
    """Return the part of a result that a job uses: only bindings need a core's build tree."""
    recipe = find_recipe(made.recipe)
    if made.stage is not Stage.CORE or user.stage is Stage.BINDINGS or not recipe:
        return tree
    return tree.without(recipe.build_tree) if recipe.build_tree else tree


def input_trees(spec: JobSpec, trees: Mapping[str, Tree]) -> dict[str, Tree] | None:
    """Return what a job uses of its inputs, by stage, given results by fingerprint."""
    known = {task.fingerprint: task for task in spec.tasks}
    if not trees.keys() >= {*spec.task.inputs} <= known.keys():
        return None
    made = [known[name] for name in spec.task.inputs]
    return {task.stage.value: needed_of(trees[task.fingerprint], task, spec.task) for task in made}


def _stored_trees(spec: JobSpec, store: Store) -> dict[str, Tree]:
    """Return the inputs of a job that are in the store, by fingerprint."""
    made = (store.find(name) for name in spec.task.inputs)
    return {result.fingerprint: result.tree for result in made if result}


def same_result(spec: JobSpec, trees: Mapping[str, Tree], store: Store) -> Result | None:
    """Return what the result of a job is, by that of another one; it is not stored."""
    inputs = input_trees(spec, trees) if compiles_by_recipe(spec.task) else None
    if inputs is None:
        return None
    files = InputFiles.of(spec, inputs)
    found = find_same(store, spec_name(spec), files)
    if found is None or found.reads is None:
        return None
    return replace(
        found,
        fingerprint=spec.task.fingerprint,
        spec=spec,
        tree=carry(found.tree, found.reads, files),
        facts=found.facts | {SAME_AS: found.fingerprint},
        run=uuid.uuid4().hex,
        key="",
        signature="",
    )


def reuse_result(spec: JobSpec, store: Store) -> Result | None:
    """Store the result of a job that would read nothing that differs, or return None."""
    watch = GcWatch(store.objects)
    result = same_result(spec, _stored_trees(spec, store), store)
    if result is None:
        return None
    if result.reads and COMMIT in result.reads.carried.values():
        file = InputFiles.of(spec, {}).files[COMMIT]
        identity = Identity(file.size, file.digest)
        store.objects.ensure(blob_key(file.digest), commit_file(spec), identity)
    result = store.signed(result)
    store.publish(result)
    collected: list[bool] = []
    watch.settle(lambda: collected.append(True))
    if collected and not all(store.objects.head(blob_key(name)) for name in result.blobs()):
        store.objects.delete([result_key(result.fingerprint)])
        return None
    remember_reads(store.objects, result)
    return result


def watch_reads(
    workdir: WorkDir, store: Store, conditions: Conditions, sandbox: Enclosure
) -> ReadWatch | None:
    """Return a watch for a job that has not started, or None if reads could leave no trace.

    So it is without bubblewrap and its filter of system calls, with a network, in a sandbox that
    shows the source elsewhere, and if steps were done by an earlier run.
    """
    spec, state, steps = workdir.spec, workdir.state(), steps_of(workdir.spec)
    if not compiles_by_recipe(spec.task) or sandbox.kind != "bwrap" or not filter_program():
        return None
    if state.steps or state.unfinished or state.is_continued or any(s.network for s in steps):
        return None
    trees = input_trees(spec, _stored_trees(spec, store))
    if trees is None:
        return None
    words = enclose(sandbox, steps[0], workdir, None)
    shown = [Path(word).resolve() for way, word in pairwise(words) if way.endswith(_SHOWING)]
    local = (task.source.file for task in spec.tasks if task.source and task.source.file)
    sources = [Path(conditions.file).parent.joinpath(path).resolve() for path in local]
    files = [file.path for file in trees.get(Stage.SOURCE.value, Tree()).files]
    is_shown = any(_shows(path, source, files) for path in shown for source in sources)
    return None if is_shown else ReadWatch(workdir, trees)


def _shows(path: Path, source: Path, files: Sequence[str]) -> bool:
    """Return whether a path leads to the original of a source with these files, or to a part."""
    if not path.is_relative_to(source):
        return source.is_relative_to(path)
    part = path.relative_to(source).as_posix()
    return any(file == part or file.startswith(f"{part}/") for file in files) or part == "."
