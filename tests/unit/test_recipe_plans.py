"""Recipe `pytorch` as values: what a toolchain changes in a plan, and which steps there are."""

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import pytest
from tests.support.helpers import EXTENSION, config_of, plan_of
from tests.support.hostile_steps import spec_of

from torchyard.config.tables import load_tables
from torchyard.errors import ConfigError, HostError, PlanError
from torchyard.model.config import Patches
from torchyard.model.job_spec import JobSpec
from torchyard.model.recipe import Stage
from torchyard.model.step import OWN, Step, placeholders_of, words_in_braces
from torchyard.plan.build import make_plan
from torchyard.plan.graph import Plan
from torchyard.plan.job_specs import make_job_spec
from torchyard.plan.select import EVERYTHING
from torchyard.recipes import compiles_by_recipe, steps_of
from torchyard.recipes.pytorch import environment
from torchyard.run.environment import job_environment
from torchyard.run.sandbox import INSIDE, Enclosure, enclose, slots_path, work_path
from torchyard.run.workdir import WorkDir

TABLES = load_tables()

TOOLED = """\
[project]
name = "torch"
version = "2.14.0"
release = "none"

[source]
git = "https://example.org/pytorch"
rev = "0123456789012345678901234567890123456789"

[toolchain]
compiler = "gcc"
cache = "/cache"

[build]
backend = "setup.py"
requires = ["ninja==1.13.0", "cmake==3.31.10"]
linalg = "torch_cuda_linalg"

[matrix]
platform = ["linux-x86_64"]
compute = ["cpu", "cu130"]
blas = ["openblas"]
python = ["cp311", "cp312"]
package = ["wheel", "libtorch"]

[[override]]
stage = "core"
compute = "cpu"
backend = "scikit-build-core"
cmake = { USE_MAGMA = "OFF", CMAKE_CXX_FLAGS = "-O1 -g" }
env = { BUILD_TEST = "1" }
"""

PARTS = {"compiler": "gcc 12 sha256:1", "compute/cu130": "cuda 13 sha256:2", "blas/openblas": "o 1"}
LINUX = "linux-x86_64"


def plan_with(parts: Mapping[str, str] = PARTS, text: str = TOOLED, *changes: str) -> Plan:
    """Plan as a machine does that has these parts."""
    config = config_of(text, *changes)
    assert config.toolchain is not None
    toolchain = msgspec.structs.replace(config.toolchain, platform=LINUX, parts=dict(parts))
    return make_plan(msgspec.structs.replace(config, toolchain=toolchain), EVERYTHING)


def spec_in(plan: Plan, stage: Stage, *scope: str) -> JobSpec:
    return make_job_spec(plan, plan.find(stage, "/".join((LINUX, *scope))))


def titles(steps: Sequence[Step]) -> list[str]:
    return [step.title for step in steps]


def test_another_compiler_changes_all_that_it_compiles() -> None:
    before, after = plan_with(), plan_with(PARTS | {"compiler": "gcc 12 sha256:9"})
    for old, new in zip(before.jobs, after.jobs, strict=True):
        assert old.identifier == new.identifier
        assert (old.fingerprint == new.fingerprint) == (old.stage is Stage.SOURCE)


def test_another_cuda_changes_what_is_for_cuda() -> None:
    before, after = plan_with(), plan_with(PARTS | {"compute/cu130": "cuda 13 sha256:9"})
    changed = [
        old.fingerprint != new.fingerprint for old, new in zip(before.jobs, after.jobs, strict=True)
    ]
    assert changed == ["/cu130-" in job.identifier for job in before.jobs]
    assert any(changed)


def test_a_toolchain_of_another_platform_says_nothing_of_this_one() -> None:
    config = config_of(TOOLED)
    assert config.toolchain is not None
    toolchain = msgspec.structs.replace(config.toolchain, platform="macos-arm64", parts=PARTS)
    plan = make_plan(msgspec.structs.replace(config, toolchain=toolchain), EVERYTHING)
    assert spec_in(plan, Stage.CORE, "cpu-openblas").task.settings["identity"] == {}


def test_what_a_core_knows_of_its_toolchain() -> None:
    settings = spec_in(plan_with(), Stage.CORE, "cu130-openblas").task.settings
    assert settings["toolchain"] == {"compiler": "gcc", "blas": "auto", "cuda": "auto"}
    assert settings["identity"] == {
        "compiler": "gcc 12 sha256:1",
        "compute": "cuda 13 sha256:2",
        "blas": "o 1",
    }
    assert settings["backend"] == "setup.py"
    assert settings["requires"] == ("cmake==3.31.10", "ninja==1.13.0")
    assert settings["linalg"] == "torch_cuda_linalg"
    assert settings["cache"] is True
    plain = spec_in(plan_with(), Stage.CORE, "cpu-openblas").task.settings
    assert plain["toolchain"] == {"compiler": "gcc", "blas": "auto"}
    assert plain["backend"] == "scikit-build-core"
    assert "linalg" not in plain


RELEASES = """
[subset.gpu]
compute = "cu130"

[channel.test]
url = "file:///test"
subset = "gpu"

[channel.release]
url = "file:///release"
promote_from = "test"
"""


def test_what_may_be_released_is_compiled_without_the_cache() -> None:
    plan = plan_with(PARTS, TOOLED + RELEASES)
    assert spec_in(plan, Stage.CORE, "cu130-openblas").task.settings["cache"] is False
    assert spec_in(plan, Stage.CORE, "cpu-openblas").task.settings["cache"] is True
    wish = '\n[[override]]\nstage = "core"\ncompute = "cu130"\ncache = true\n'
    forced = plan_with(PARTS, TOOLED + RELEASES + wish)
    assert spec_in(forced, Stage.CORE, "cu130-openblas").task.settings["cache"] is True


def test_where_the_cache_is_does_not_count() -> None:
    there = plan_with(PARTS, TOOLED.replace('"/cache"', '"redis://example.org:6379"'))
    for one, other in zip(plan_with().jobs, there.jobs, strict=True):
        assert one.fingerprint == other.fingerprint


@pytest.mark.parametrize(
    "text", ["cmake", "cmake>=3", "cmake==3.*", "cmake>=3,==3.1", "cmake @ https://x/y.whl", "!"]
)
def test_a_requirement_without_a_version_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not pinned"):
        config_of(TOOLED, f'build.requires=["ninja==1.13.0", "{text}"]')


@pytest.mark.parametrize("stage", [Stage.SOURCE, Stage.CORE, Stage.BINDINGS, Stage.PACKAGE])
def test_what_another_machine_compiled_is_known_as_part_of_the_plan(stage: Stage) -> None:
    here, nowhere = plan_with(), plan_with({})
    for job, planned in zip(here.jobs, nowhere.jobs, strict=True):
        if job.stage is stage:
            spec = make_job_spec(here, job)
            assert spec.anywhere == planned.fingerprint
            assert (job.fingerprint == planned.fingerprint) is (stage is Stage.SOURCE)


HIPIFY = "translate the source by tools/amd_build/build_amd.py"


def rocm_core() -> JobSpec:
    parts = PARTS | {"compute/rocm7.2": "rocm 7.2 sha256:3"}
    plan = plan_with(parts, TOOLED.replace('"cu130"', '"rocm7.2"'))
    assert HIPIFY not in titles(steps_of(spec_in(plan, Stage.CORE, "cpu-openblas")))
    return spec_in(plan, Stage.CORE, "rocm7.2-openblas")


def test_rocm_cores_are_translated_before_they_are_configured() -> None:
    spec = rocm_core()
    names = titles(steps_of(spec))
    assert names.index("lay the source out") < names.index(HIPIFY) < names.index("configure")
    settings = spec.task.settings
    assert settings["translate"] == "tools/amd_build/build_amd.py"
    assert settings["toolkit_env"] == TABLES.compute["rocm7.2"].env != {}
    assert TABLES.compute["rocm5.2"].env == {}, "its clang does not know --gcc-install-dir"


@pytest.mark.parametrize("has_script", [True, False])
def test_a_fake_hipify_has_run_when_cmake_is_called(tmp_path: Path, *, has_script: bool) -> None:
    """There is no ROCm here: a fake script leaves a file, and a fake setup.py looks for it."""
    tree, program = tmp_path / "build", tmp_path / "env/bin/python"
    (tree / "tools/amd_build").mkdir(parents=True)
    if has_script:
        script = "from pathlib import Path\n\nPath('translated').touch()\n"
        (tree / "tools/amd_build/build_amd.py").write_text(script)
    (tree / "setup.py").write_text(
        "import sys\nfrom pathlib import Path\n\nprint(Path('translated').exists(), sys.argv[1:])\n"
    )
    program.parent.mkdir(parents=True)
    program.symlink_to(sys.executable)
    said = ""
    for step in steps_of(rocm_core()):
        if step.title in (HIPIFY, "configure"):
            argv = [word.replace("{work}", str(tmp_path)) for word in step.run]
            said = subprocess.run(argv, cwd=tree, check=True, capture_output=True, text=True).stdout
    assert said == f"{has_script} ['build', '--cmake-only']\n"


def test_the_steps_of_a_core() -> None:
    spec = spec_in(plan_with(), Stage.CORE, "cpu-openblas")
    assert compiles_by_recipe(spec.task)
    steps = steps_of(spec)
    assert titles(steps) == [
        "lay the source out",
        "compare the tree's version",
        "keep its licences and tests",
        "ask CMake to tell what it makes of it",
        "tell CMake what the file says",
        "configure",
        "configure again, as bindings will",
        "compare it with what was asked for",
        "compile the core",
        "install the core",
        "collect what it needs",
        "list what is in it",
        "keep what was built",
    ]
    configure = steps[titles(steps).index("configure")]
    assert configure.run[:2] == ("{work}/env/bin/python", "-c")
    assert "scikit_build_core" in configure.run[2]
    assert steps[0].run[-1].splitlines()[-1] == f"echo {spec.commit} > .git/HEAD"
    assert not any(step.network for step in steps)


def test_a_build_is_told_by_variables_and_the_file_has_the_last_word() -> None:
    words = '\n[[override]]\nstage = "core"\nenv = { A = "{json} {{x}} {work}", B = "core" }\n'
    words += '\n[[override]]\nstage = "bindings"\nenv = { B = "bindings" }\n'
    plan = plan_with(PARTS, TOOLED + words)
    core = spec_in(plan, Stage.CORE, "cpu-openblas")
    env = job_environment(core.task, "/w", None, environment(core))
    assert env["PYTORCH_BUILD_VERSION"] == "2.14.0+cpu"
    assert env["BUILD_TEST"] == "1"
    assert (env["A"], env["B"]) == ("{json} {{x}} {work}", "core")
    bound = spec_in(plan, Stage.BINDINGS, "cpu-openblas", "cp312")
    env = job_environment(bound.task, "/w", None, environment(bound))
    assert (env["A"], env["B"]) == ("{json} {{x}} {work}", "bindings")


def test_a_job_that_asks_for_secrets_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A spec may come from a master or a store, where no rule for files was applied to it."""
    task = spec_in(plan_with(), Stage.CORE, "cpu-openblas").task
    names = ("HF_TOKEN", "TWINE_PASSWORD", "TT_HARMLESS")
    for name in names:
        monkeypatch.setenv(name, "1")
    hostile = msgspec.structs.replace(task, settings={**task.settings, "pass_env": names})
    assert job_environment(hostile, "/w", None).keys() & set(names) == {"TT_HARMLESS"}


def test_a_core_for_cuda_makes_its_linear_algebra_twice() -> None:
    steps = steps_of(spec_in(plan_with(), Stage.CORE, "cu130-openblas"))
    names = titles(steps)
    without = names.index("compile torch_cuda_linalg without MAGMA")
    assert names.index("compare it with what was asked for") < without
    assert without < names.index("compile the core")
    line = steps[without].run[-1]
    assert line.index("USE_MAGMA=OFF") < line.index("--target torch_cuda_linalg")
    assert line.splitlines()[-1] == "cmake -DUSE_MAGMA=ON build"
    again = steps[names.index("compare it with what was asked for")].run
    assert (steps[without + 1].title, steps[without + 1].run) == ("compare it again", again)
    configure = steps[names.index("configure")]
    assert configure.run == ("{work}/env/bin/python", "setup.py", "build", "--cmake-only")
    off = 'override=[{stage="core", compute="cu130", env={USE_MAGMA="0"}}]'
    steps = steps_of(spec_in(plan_with(PARTS, TOOLED, off), Stage.CORE, "cu130-openblas"))
    assert "USE_MAGMA=ON" not in steps[without].run[-1]


@pytest.mark.parametrize(
    ("compute", "backend"), [("cpu", "scikit_build_core.build"), ("cu130", "setuptools.build_meta")]
)
def test_the_steps_of_bindings(compute: str, backend: str) -> None:
    spec = spec_in(plan_with(), Stage.BINDINGS, f"{compute}-openblas", "cp312")
    assert compiles_by_recipe(spec.task)
    steps = steps_of(spec)
    again = ["configure as the wheel will"] if compute == "cpu" else []
    assert titles(steps) == [
        "restore the core's build",
        "tell CMake of this Python",
        *again,
        "keep the times of what is unchanged",
        "compile the bindings",
        "make the project's own wheel",
        "take it apart",
        "list what is in it",
    ]
    assert f"from {backend} import build_wheel" in steps[-3].run[-1]


def test_a_package_is_made_by_one_step_that_needs_no_toolchain() -> None:
    spec = spec_in(plan_with(), Stage.PACKAGE, "cpu-openblas", "cp312", "wheel")
    assert not compiles_by_recipe(spec.task)
    (step,) = steps_of(spec)
    assert step.run[:6] == (*OWN, "tool", "pack")


def test_steps_name_only_places_that_their_stage_has() -> None:
    for job in plan_with().jobs:
        if job.stage is not Stage.SOURCE:
            for step in steps_of(make_job_spec(plan_with(), job)):
                for word in step.run:
                    assert set(words_in_braces(word)) <= {"self", *placeholders_of(job.stage)}, word


def test_without_a_toolchain_there_are_no_steps() -> None:
    text = TOOLED.replace('[toolchain]\ncompiler = "gcc"\ncache = "/cache"\n', "")
    plan = make_plan(config_of(text), EVERYTHING)
    with pytest.raises(PlanError, match="nothing says with what"):
        steps_of(spec_in(plan, Stage.CORE, "cpu-openblas"))


def test_stages_without_steps_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchyard.recipes.extension.steps", lambda _spec: None)
    plan = plan_of(EXTENSION)
    job = next(job for job in plan.jobs if job.stage is Stage.PACKAGE)
    spec = make_job_spec(plan, job)
    with pytest.raises(PlanError, match="has no steps for stage `package`") as caught:
        steps_of(spec)
    assert caught.value.diagnostics[0].hint == "give the commands in [[steps.package]]"


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("nightly", "{base}/nightly"),
        ("/srv/nightly", "/srv/nightly"),
        ("s3://bucket/nightly", "s3://bucket/nightly"),
    ],
)
def test_a_plan_ends_with_publishing(url: str, place: str) -> None:
    text = f'{TOOLED}\n[channel.nightly]\nurl = "{url}"\n'
    plan = make_plan(config_of(text), EVERYTHING)
    (job,) = [job for job in plan.jobs if job.stage is Stage.PUBLISH]
    (step,) = steps_of(make_job_spec(plan, job))
    assert place in step.run


# ------------------------------------------------------------------------------- sandbox

needs_bwrap = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")

STEP = Step(run=("cmake", "--version"), cwd=f"{INSIDE}/build")


@pytest.fixture
def workdir(tmp_path: Path) -> WorkDir:
    """The directory of a job."""
    made = WorkDir(tmp_path, spec_of(STEP))
    made.prepare("view")
    return made


@needs_bwrap
def test_a_view_has_the_jobs_directory_at_one_path(workdir: WorkDir) -> None:
    view = Enclosure("view")
    assert work_path("view", workdir) == INSIDE
    assert slots_path("view", "/run/slots") == "/run/slots"
    bwrap, *argv = enclose(view, STEP, workdir, "/run/slots")
    assert bwrap == shutil.which("bwrap")
    assert argv[:6] == ["--die-with-parent", "--dev-bind", "/", "/", "--tmpfs", "/mnt"]
    there = argv.index("--chdir")
    writable = argv.index("--bind")
    assert argv[writable : writable + 3] == ["--bind", str(workdir.job), INSIDE]
    assert argv.count("--bind") == 1
    assert argv[there:] == ["--chdir", f"{INSIDE}/build", "--", *STEP.run]
    assert "--unshare-all" not in argv


def test_without_a_sandbox_a_step_is_as_it_is(workdir: WorkDir) -> None:
    nothing = Enclosure("none")
    assert work_path("none", workdir) == str(workdir.job)
    assert enclose(nothing, STEP, workdir, None) == list(STEP.run)


def test_without_bubblewrap_there_is_no_view(
    workdir: WorkDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostError, match="bubblewrap is not installed"):
        enclose(Enclosure("view"), STEP, workdir, None)


@needs_bwrap
def test_a_sandbox_shuts_the_network_out_unless_a_step_wants_it(workdir: WorkDir) -> None:
    bwrap = Enclosure("bwrap")
    assert slots_path("bwrap", "/run/slots") == "/mnt/slots"
    assert "--share-net" not in enclose(bwrap, STEP, workdir, None)
    online = msgspec.structs.replace(STEP, network=True)
    assert "--share-net" in enclose(bwrap, online, workdir, None)


def test_a_kind_of_tree_brings_its_settings_and_the_file_has_the_last_word() -> None:
    change = '\n[[override]]\nstage = "core"\nenv = { USE_NUMA = "1" }\n'
    plain = spec_in(plan_with(), Stage.CORE, "cpu-openblas").task
    task = spec_in(
        plan_with(PARTS, TOOLED + change, "build.tree=debian"), Stage.CORE, "cpu-openblas"
    ).task
    assert task.table("env")["USE_SYSTEM_LIBS"] == "1"
    assert task.table("env")["USE_NUMA"] == "1"
    assert task.table("cmake")["HAVE_SOVERSION"] == "OFF"
    assert task.fingerprint != plain.fingerprint


def test_commands_prepare_the_source_before_it_is_configured() -> None:
    plan = plan_with(PARTS, TOOLED, 'build.prepare=["sed -i s/a/b/ x", "make y"]')
    names = titles(steps_of(spec_in(plan, Stage.CORE, "cpu-openblas")))
    assert names[:4] == ["lay the source out", "sed -i s/a/b/ x", "make y", names[3]]
    assert names.index("configure") > 3


@pytest.mark.parametrize(
    ("said", "network"),
    [
        ('git = "https://example.org/x"\nrev = "v1"', True),
        ('path = "code"', False),
        (f'archive = "a.zip"\nsha256 = "{"0" * 64}"', False),
        (f'archive = "https://example.org/a.zip"\nsha256 = "{"0" * 64}"', True),
        ('debian = "pytorch=2.6.0+dfsg-7"', True),
    ],
)
def test_every_kind_of_source_is_fetched_and_patched_in_one_step(said: str, network: bool) -> None:
    """A step that was killed is begun again, and a half patched source can't be patched again."""
    written = TOOLED[TOOLED.index("git = ") : TOOLED.index("[build]")]
    config = config_of(TOOLED.replace(written, f'{said}\n[toolchain]\nroot = "root"\n'))
    patches = Patches(texts={"b.patch": "x", "a.patch": "y"})
    plan = make_plan(msgspec.structs.replace(config, patches=patches), EVERYTHING)
    spec = make_job_spec(plan, plan.find(Stage.SOURCE, ""))
    (step,) = steps_of(spec)
    assert "{spec}" in step.run  # which has the patches
    assert step.network is network
    assert spec.task.words("series") == ["b.patch", "a.patch"]
