"""Which sandbox a job gets: by default, on request, and on demand of the machine."""

import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from tests.support.helpers import WORKS, config_of, plan_of
from tests.support.hostile_steps import Machine, spec_of
from tests.support.roots import make_debian

from torchyard.errors import ElsewhereError, HostError, UsageError
from torchyard.host import system_view
from torchyard.model.config import Sandbox, SandboxKind
from torchyard.model.event import AnyEvent
from torchyard.model.job_spec import JobSpec, Task
from torchyard.model.recipe import Stage
from torchyard.model.step import SHELL, Setting, Step
from torchyard.recipes import runs_only_ours
from torchyard.run import conditions as choice
from torchyard.run.conditions import Conditions, choose_sandbox, enclosure_of, with_found_root
from torchyard.run.job import open_job
from torchyard.run.permissions import ROOTS, SANDBOX
from torchyard.run.sandbox import enclose, is_traced, tool_paths
from torchyard.run.workdir import WorkDir
from torchyard.store.store import Store
from torchyard.toolchain.root import identify_root
from torchyard.workspace.run import job_conditions

needs_bwrap = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")

STEP = Step(run=(*SHELL, "true"))


def chosen(spec: JobSpec, **given: object) -> tuple[SandboxKind, list[AnyEvent]]:
    heard: list[AnyEvent] = []
    conditions = Conditions(Path("/work"), "/torchyard.toml", **given)  # type: ignore[arg-type]
    return choose_sandbox(spec, conditions, heard.append), heard


@pytest.fixture
def fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bubblewrap does not work."""
    monkeypatch.setattr(
        choice, "sandbox_fault", lambda kind="bwrap": "no namespaces" if kind == "bwrap" else ""
    )


@pytest.fixture
def works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "sandbox_fault", lambda kind="bwrap": "")


@pytest.mark.usefixtures("works")
@pytest.mark.parametrize(
    ("asked", "demanded", "kind"),
    [
        (None, None, "bwrap"),
        ("none", None, "none"),
        ("view", None, "view"),
        ("bwrap", None, "bwrap"),
        (None, "bwrap", "bwrap"),
        ("none", "bwrap", "bwrap"),
        ("view", "bwrap", "bwrap"),
        ("bwrap", "none", "bwrap"),
        ("none", "view", "view"),
    ],
)
def test_a_job_gets_what_is_asked_for_and_never_less_than_demanded(
    asked: SandboxKind | None, demanded: SandboxKind | None, kind: SandboxKind
) -> None:
    found = chosen(spec_of(STEP), sandbox=Sandbox(kind=asked), demanded=demanded)
    assert found == (kind, [])


@pytest.mark.usefixtures("fault")
def test_without_bubblewrap_a_note_says_that_there_is_no_sandbox() -> None:
    kind, (noted,) = chosen(spec_of(STEP))
    assert kind == "none"
    assert "jobs run without a sandbox: their steps can use the network" in str(noted)


@pytest.mark.usefixtures("fault")
@pytest.mark.parametrize(
    "given",
    [
        {"demanded": "bwrap"},
        {"demanded": "bwrap", "sandbox": Sandbox(kind="none")},
        {"sandbox": Sandbox(kind="bwrap")},
    ],
)
def test_a_sandbox_that_has_to_be_and_does_not_work_is_an_error(given: dict[str, object]) -> None:
    with pytest.raises(HostError, match="has to run in a sandbox, which does not work here"):
        chosen(spec_of(STEP), **given)


@pytest.mark.usefixtures("works")
@pytest.mark.parametrize("wider", [Sandbox(kind="bwrap", root="/"), Sandbox(readable=("/root",))])
def test_a_spec_can_not_widen_the_view_of_a_machine_that_demands_a_sandbox(
    wider: Sandbox,
) -> None:
    with pytest.raises(HostError, match="this machine refuses core:"):
        chosen(spec_of(STEP), sandbox=wider, demanded="bwrap")


def fetching(**settings: Setting) -> JobSpec:
    """Return the order of a job that fetches a source."""
    task = spec_of(STEP).task
    kept = {"commit": "c" * 40, **settings}
    task = msgspec.structs.replace(
        task, id="source:demo-1.0", stage=Stage.SOURCE, scope="", settings=kept
    )
    return JobSpec(tasks=(task,))


def compiling(compiler: str) -> JobSpec:
    task = spec_of(STEP).task
    return JobSpec(
        tasks=(msgspec.structs.replace(task, settings={"toolchain": {"compiler": compiler}}),)
    )


@pytest.mark.usefixtures("works")
@pytest.mark.parametrize(
    "spec",
    [
        fetching(env={"GIT_SSH_COMMAND": "touch /tmp/x"}),
        fetching(env={"LD_PRELOAD": "/tmp/x.so"}),
        compiling("/srv/work/core-0123456789abcdef/job/build/gcc"),
        compiling("/usr/../srv/work/gcc"),
        compiling("build/gcc"),
    ],
)
def test_a_spec_has_no_code_run_outside_of_the_sandbox_that_is_demanded(spec: JobSpec) -> None:
    """Sources are fetched, and compilers asked for their version, outside."""
    with pytest.raises(HostError, match="this machine refuses"):
        chosen(spec, demanded="bwrap")
    assert chosen(spec)[0] in ("none", "bwrap"), "the person's own file may"


def rooted(identity: str) -> JobSpec:
    """Return the order of a job that was planned for a root."""
    task = spec_of(STEP).task
    settings: dict[str, Setting] = {**task.settings, "identity": {"root": identity}}
    return JobSpec(tasks=(msgspec.structs.replace(task, settings=settings),))


def found_root(spec: JobSpec, place: str, folder: Path, *, strict: bool) -> str | None:
    sandbox, demanded = Sandbox(kind="bwrap", root=place), "bwrap" if strict else None
    conditions = Conditions(
        folder / "work",
        str(folder / "torchyard.toml"),
        sandbox=sandbox,
        demanded=demanded,  # type: ignore[arg-type]
    )
    kind = choose_sandbox(spec, conditions, lambda _: None)
    return with_found_root(conditions, spec, kind).sandbox.root


@pytest.mark.usefixtures("works")
@pytest.mark.parametrize("strict", [True, False])
def test_a_machine_that_offers_roots_runs_jobs_in_the_planned_one(
    strict: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The spec's own path means nothing there: that machine may have anything under it."""
    old = make_debian(tmp_path / "old", version="2.36-9")
    new = make_debian(tmp_path / "new", version="2.41-12")
    packed = tmp_path / "new.tar"
    with tarfile.open(packed, "w") as tar:
        tar.add(new, ".")
    monkeypatch.setenv(ROOTS, f"{old}:{packed}")
    root = found_root(rooted(identify_root(new)), "/", tmp_path, strict=strict)
    assert root is not None
    assert Path(root).is_relative_to(tmp_path / "work/roots")
    assert identify_root(root) == identify_root(new)
    assert found_root(rooted(identify_root(old)), new, tmp_path, strict=strict) == old
    other = make_debian(tmp_path / "other", version="2.42-1")
    with pytest.raises(ElsewhereError) as refused:
        found_root(rooted(identify_root(other)), other, tmp_path, strict=strict)
    assert str(refused.value) == (
        f"this machine has {identify_root(old)}; {identify_root(new)}, "
        f"but the plan was made for {identify_root(other)}"
    )


@pytest.mark.usefixtures("works")
def test_another_root_under_the_path_of_the_planned_one_is_refused(tmp_path: Path) -> None:
    here = make_debian(tmp_path / "root")
    spec = rooted(identify_root(here))
    assert found_root(spec, "root", tmp_path, strict=False) == here
    other = rooted("debian 12, 2 packages sha256:0000000000000000")
    with pytest.raises(ElsewhereError, match="but the plan was made for debian 12"):
        found_root(other, "root", tmp_path, strict=False)


@pytest.mark.usefixtures("works")
def test_a_root_gets_no_source_where_a_sandbox_is_demanded_and_none_is_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """apt of a root that a spec names would be code of its choice, with a network."""
    spec = fetching(debian="pytorch=2.6.0+dfsg-7")
    root = make_debian(tmp_path / "root")
    with pytest.raises(HostError, match="this machine refuses source:"):
        found_root(spec, "root", tmp_path, strict=True)
    monkeypatch.setenv(ROOTS, root)
    assert found_root(spec, "/srv/other", tmp_path, strict=True) == root


@pytest.mark.usefixtures("works")
@pytest.mark.parametrize("spec", [fetching(), compiling("gcc-12"), compiling("/opt/gcc/bin/gcc")])
def test_specs_without_such_wishes_are_run_where_a_sandbox_is_demanded(spec: JobSpec) -> None:
    assert chosen(spec, demanded="bwrap")[0] in ("none", "bwrap")


def test_a_machine_demands_by_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = msgspec.structs.replace(spec_of(STEP), sandbox=Sandbox(kind="none"))
    assert job_conditions(spec, "torchyard.toml", None, None).demanded is None
    monkeypatch.setenv(SANDBOX, "bwrap")
    assert job_conditions(spec, "torchyard.toml", None, "none").demanded == "bwrap"
    monkeypatch.setenv(SANDBOX, "strong")
    with pytest.raises(UsageError, match="not a kind of sandbox"):
        job_conditions(spec, "torchyard.toml", None, None)


def test_the_sandbox_is_no_part_of_fingerprints() -> None:
    texts = [WORKS, *(f'{WORKS}[sandbox]\nkind = "{kind}"\n' for kind in ("none", "view", "bwrap"))]
    texts.append(f'{WORKS}[sandbox]\nreadable = ["/srv"]\n')
    plans = [[job.fingerprint for job in plan_of(text).jobs] for text in texts]
    assert all(plan == plans[0] for plan in plans)
    assert config_of(WORKS).sandbox.kind is None


def test_only_our_own_steps_run_outside() -> None:
    task = spec_of(STEP).task
    for stage in ("source", "publish"):
        ours = msgspec.convert(
            {**msgspec.to_builtins(task), "stage": stage, "settings": {}}, type(task)
        )
        theirs = msgspec.structs.replace(ours, settings=task.settings)
        assert runs_only_ours(ours)
        assert not runs_only_ours(theirs)
    for stage in ("core", "bindings", "package", "check", "smoke"):
        ours = msgspec.convert(
            {**msgspec.to_builtins(task), "stage": stage, "settings": {}}, type(task)
        )
        assert not runs_only_ours(ours)


# ------------------------------------------------------------------------- what steps can see


def seen(tmp_path: Path, step: Step, **given: object) -> list[str]:
    """Return the options of bwrap for a step of a project in a directory."""
    file = tmp_path / "project" / "torchyard.toml"
    (file.parent / ".torchyard" / "store").mkdir(parents=True)
    file.touch()
    work = file.parent / ".torchyard" / "work"
    conditions = Conditions(work, str(file), **given)  # type: ignore[arg-type]
    workdir = WorkDir(work, spec_of(step))
    workdir.prepare("bwrap")
    store = Store.at(str(file.parent / ".torchyard" / "store"))
    return enclose(enclosure_of("bwrap", workdir, conditions, {}, store), step, workdir, None)


@needs_bwrap
def test_the_project_is_seen_only_by_steps_that_name_it(tmp_path: Path) -> None:
    base = str(tmp_path / "project")
    assert base not in seen(tmp_path / "without", STEP)
    argv = seen(tmp_path, Step(run=("ls", "{base}")))
    at = argv.index(base)
    assert argv[at - 1 : at + 2] == ["--ro-bind", base, base]
    for name in ("work", "store"):
        hidden = argv.index(f"{base}/.torchyard/{name}")
        assert argv[hidden - 1] == "--tmpfs"
        assert hidden > at


@needs_bwrap
def test_more_can_be_made_readable(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    argv = seen(tmp_path, STEP, sandbox=Sandbox(readable=(str(tmp_path / "models"),)))
    at = argv.index(str(tmp_path / "models"))
    assert argv[at - 1] == "--ro-bind"


def test_a_tool_that_is_missing_does_not_show_what_is_beside_it(tmp_path: Path) -> None:
    workdir = WorkDir(tmp_path / "work", spec_of(STEP))
    (tmp_path / "kit/bin").mkdir(parents=True)
    variables = {"CUDA_HOME": f"{tmp_path}/kit/bin", "MKLROOT": f"{tmp_path}/none:/nowhere"}
    shown = {path for path in tool_paths(variables, workdir) if Path(path).exists()}
    assert shown == {str(tmp_path / "kit")}


@needs_bwrap
def test_private_files_of_the_system_are_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes = {"a": 0o700, "b": 0o744, "c": 0o755, "c/d": 0o755, "c/d/e": 0o755}
    for name, mode in modes.items():
        (tmp_path / name).mkdir(mode)
    files = {"key": 0o600, "public": 0o644, "c/key": 0o640, "c/d/key": 0o600, "c/d/e/key": 0o600}
    for name, mode in files.items():
        (tmp_path / name).touch()
        (tmp_path / name).chmod(mode)
    monkeypatch.setattr(system_view, "_SECRETS", {str(tmp_path): 3, str(tmp_path / "none"): 3})
    system_view._private_files.cache_clear()
    try:
        words = system_view.system_view()
    finally:
        system_view._private_files.cache_clear()
    hidden = [word.removeprefix(f"{tmp_path}/") for word in words if word.startswith(str(tmp_path))]
    assert hidden == ["a", "b", "c/d/key", "c/key", "key"]


@pytest.mark.parametrize(
    ("stage", "given", "count"),
    [
        (Stage.SMOKE, {}, 1),
        (Stage.CHECK, {}, 0),
        (Stage.SMOKE, {"demanded": "bwrap"}, 0),
        (Stage.SMOKE, {"foreign": True}, 0),
    ],
)
def test_smoke_jobs_see_the_channels_that_they_install_from(
    tmp_path: Path, stage: Stage, given: dict[str, str | bool], count: int
) -> None:
    task = Task(
        id=f"{stage}:demo-1.0/linux-x86_64/cpu-mkl/cp312/wheel",
        stage=stage,
        stage_revision=1,
        scope="linux-x86_64/cpu-mkl/cp312/wheel",
        recipe="pytorch",
        fingerprint="0" * 64,
        settings={"channels": (str(tmp_path), "https://example.org/conda")},
    )
    workdir = WorkDir(tmp_path / "work", JobSpec(tasks=(task,)))
    conditions = Conditions(tmp_path / "work", "/none.toml", **given)  # type: ignore[arg-type]
    store = Store.at(str(tmp_path / "store"))
    enclosure = enclosure_of("bwrap", workdir, conditions, {}, store)
    assert enclosure.readable.count(str(tmp_path)) == count


def test_smoke_jobs_in_a_root_see_the_channels_beside_the_file(tmp_path: Path) -> None:
    task = Task(
        id="smoke:demo-1.0/linux-x86_64/cpu-mkl/cp312/conda",
        stage=Stage.SMOKE,
        stage_revision=1,
        scope="linux-x86_64/cpu-mkl/cp312/conda",
        recipe="pytorch",
        fingerprint="0" * 64,
        settings={"channels": ("beside", "/elsewhere", "https://example.org/conda")},
    )
    root = tmp_path / "root"
    (root / "usr").mkdir(parents=True)
    workdir = WorkDir(tmp_path / "work", JobSpec(tasks=(task,)))
    conditions = Conditions(
        tmp_path / "work",
        "/home/me/torchyard.toml",
        sandbox=Sandbox(kind="bwrap", root=str(root), readable=("/more",)),
    )
    enclosure = enclosure_of("bwrap", workdir, conditions, {}, Store.at(str(tmp_path / "store")))
    assert enclosure.readable == ("/more", "/home/me/beside", "/elsewhere")


@pytest.mark.parametrize("root", ["/", "above the work directory"])
def test_a_root_with_files_of_users_is_refused(tmp_path: Path, root: str) -> None:
    (tmp_path / "usr").mkdir()
    path = root if root == "/" else str(tmp_path)
    with pytest.raises(HostError, match="contains files of this machine's users"):
        seen(tmp_path, STEP, sandbox=Sandbox(kind="bwrap", root=path))


@needs_bwrap
def test_a_step_can_not_choose_the_sandbox_of_a_shell(tmp_path: Path) -> None:
    """It once could: the state of a job was a file that its steps could write."""
    machine = Machine(tmp_path)
    fake = msgspec.json.encode({"sandbox": "none"}).decode().replace("{", "{{").replace("}", "}}")
    script = (
        f"for f in {{work}}/state.json {{work}}/../state.json; do echo '{fake}' > $f; done; false"
    )
    assert "failed" in machine.run(script).error
    step = Step(run=(*SHELL, script), env={"VICTIM": str(machine.victim)})
    conditions = Conditions(machine.work, str(machine.file))
    store = Store.at(str(machine.folder / "store"))
    context = open_job(spec_of(step), store, conditions, lambda _: None)
    assert context.sandbox.kind == "bwrap"


def test_a_machine_without_bubblewrap_has_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    system_view._tried.cache_clear()
    try:
        assert "bubblewrap is not installed" in system_view.sandbox_fault()
    finally:
        system_view._tried.cache_clear()


@pytest.mark.parametrize(
    ("name", "refuses", "cure"),
    [
        (
            "kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        (
            "kernel/unprivileged_userns_clone",
            "0",
            "sysctl -w kernel.unprivileged_userns_clone=1",
        ),
        ("user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=10000"),
        ("kernel/none", "1", "start the container with --security-opt seccomp=unconfined"),
    ],
)
@needs_bwrap
def test_the_line_that_helps_is_known(tmp_path: Path, name: str, refuses: str, cure: str) -> None:
    """The first is Ubuntu 24.04's: bubblewrap starts, and may not map users."""
    file = tmp_path / "proc/sys" / name
    file.parent.mkdir(parents=True)
    file.write_text(f"{refuses}\n", encoding="ascii")
    assert cure in system_view.sandbox_cure(tmp_path)


REFUSES = """#!/bin/sh
case "$*" in *"{refused}"*) ;; *"{word}"*) exec {bwrap} "$@";; esac
echo "bwrap: {said}" >&2
exit 1
"""


def test_a_process_that_a_failed_try_leaves_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fake bwrap: the real one leaves such a process in a sandbox that has a container's proc."""
    fake = tmp_path / "bwrap"
    left = "sleep 1000 & echo 'bwrap: no' >&2; exit 1"
    fake.write_text(f"#!/bin/sh\n{left}\n", encoding="utf-8")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    system_view._tried.cache_clear()
    try:
        assert system_view.sandbox_fault("view") == "exit code 1: bwrap: no"
    finally:
        system_view._tried.cache_clear()


@needs_bwrap
@pytest.mark.parametrize(
    ("kind", "word", "refused"),
    [
        ("view", "--unshare-user", "-never-"),
        ("bwrap", "--ro-bind /proc /proc", "-never-"),
        ("bwrap", "--ro-bind /proc /proc", "--hostname"),
    ],
)
def test_what_a_container_refuses_is_had_in_another_way(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: Literal["view", "bwrap"],
    word: str,
    refused: str,
) -> None:
    """A fake bwrap refuses what the real one may not do as root in podman's containers."""
    real = shutil.which("bwrap")
    said = "Creating new namespace failed: Operation not permitted"
    fake = tmp_path / "bwrap"
    fake.write_text(
        REFUSES.format(word=word, refused=refused, bwrap=real, said=said), encoding="utf-8"
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    system_view._tried.cache_clear()
    try:
        assert system_view.sandbox_fault(kind) == ""
        shown = [*system_view.isolated(), *system_view.system_view()]
        made = system_view.machine_view() if kind == "view" else shown
        assert word in " ".join(made)
        assert subprocess.call([*made, "--", "true"], env={"PATH": os.defpath}) == 0
    finally:
        system_view._tried.cache_clear()


@pytest.mark.parametrize("compiler", ["cc", None])
def test_without_any_namespace_jobs_that_compile_are_traced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiler: str | None
) -> None:
    """A fake bwrap refuses all, as that of Ubuntu 24.04 without its profile does."""
    fake = tmp_path / "bwrap"
    said = "setting up uid map: Permission denied"
    fake.write_text(
        REFUSES.format(word="-never-", refused="-", bwrap="false", said=said), encoding="utf-8"
    )
    fake.chmod(0o755)
    if compiler:
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    else:
        monkeypatch.setenv("PATH", str(tmp_path))
    system_view._tried.cache_clear()
    try:
        spec = spec_of(STEP)
        given = Conditions(tmp_path / "work", "/torchyard.toml", sandbox=Sandbox(kind="view"))
        if compiler:
            assert choose_sandbox(spec, given, lambda _: None) == "view"
            assert is_traced("view")
        else:
            with pytest.raises(ElsewhereError, match=r"uid map.*nor without.*no C compiler"):
                choose_sandbox(spec, given, lambda _: None)
    finally:
        system_view._tried.cache_clear()
