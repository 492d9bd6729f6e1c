"""Recipe `extension`: what a job depends on, its steps, and the wheel that it makes."""

import re
import shutil
import subprocess
import sys
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import msgspec
import pytest
from tests.support.helpers import EXTENSION, Command, config_of

from torchyard.config.known_extensions import known_variables
from torchyard.engines.builtin.local import _about_downloads
from torchyard.errors import BuildError, ConfigError, PlanError
from torchyard.model.job_spec import JobSpec
from torchyard.model.lock import BuildLock
from torchyard.model.recipe import Stage
from torchyard.package.format import PackageBuild
from torchyard.package.sbom.bill import bill_of
from torchyard.package.wheel.extension import assemble_extension
from torchyard.plan.build import make_plan
from torchyard.plan.graph import Plan
from torchyard.plan.job_specs import make_job_spec
from torchyard.plan.select import EVERYTHING
from torchyard.recipes import compiles_by_recipe, steps_of
from torchyard.recipes.extension import environment
from torchyard.run.provision import _torch_of
from torchyard.toolchain.compiled_code import check_compiled
from torchyard.toolchain.index_wheels import resolve_wheels
from torchyard.toolchain.python_project import (
    BuildSystem,
    build_wheel_program,
    read_build_system,
)

TOOLED = f"{EXTENSION}[toolchain]\n"
LINUX = "linux-x86_64"
CELL = f"{LINUX}/cpu-torch2.13/cp311"
TORCH = "torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl"
LOCK = BuildLock(environments={CELL: (TORCH,)}, files={TORCH: "5" * 64})


def plan_with(lock: BuildLock = LOCK, text: str = TOOLED) -> Plan:
    return make_plan(msgspec.structs.replace(config_of(text), lock=lock), EVERYTHING)


def spec_in(plan: Plan, stage: Stage, path: str) -> JobSpec:
    return make_job_spec(plan, plan.find(stage, path))


def test_the_lock_is_a_part_of_what_it_is_the_lock_of() -> None:
    other = BuildLock(environments={CELL: (TORCH,)}, files={TORCH: "6" * 64})
    before, after = plan_with(), plan_with(other)
    changed = [
        new.identifier
        for old, new in zip(before.jobs, after.jobs, strict=True)
        if old.fingerprint != new.fingerprint and new.stage is not Stage.PUBLISH
    ]
    assert changed
    assert all("cpu-torch2.13/cp311" in name for name in changed)
    task = spec_in(before, Stage.BINDINGS, CELL).task
    assert task.words("requires") == [f"torch==2.13.0+cpu --hash=sha256:{'5' * 64}"]
    assert compiles_by_recipe(task)


def test_a_build_says_how_much_its_wheels_are_and_that_is_no_part_of_them() -> None:
    sized = plan_with(msgspec.structs.replace(LOCK, sizes={TORCH: 190_000_000}))
    text = _about_downloads(sized, sized.jobs)
    assert text == "builds with 1 wheel of 190 MB: what uv has not cached is downloaded"
    assert not _about_downloads(sized, sized.jobs[:1])
    assert not _about_downloads(plan_with(), plan_with().jobs), "an older lock has no sizes"
    assert [job.fingerprint for job in sized.jobs] == [job.fingerprint for job in plan_with().jobs]


def test_what_is_not_locked_is_not_built() -> None:
    spec = spec_in(plan_with(), Stage.BINDINGS, f"{LINUX}/cpu-torch2.14/cp311")
    with pytest.raises(PlanError, match="does not say with which torch") as caught:
        steps_of(spec)
    assert caught.value.diagnostics[0].hint == "run `torchyard lock`"
    bare = spec_in(plan_with(text=EXTENSION), Stage.BINDINGS, CELL)
    with pytest.raises(PlanError, match="nothing says with what"):
        steps_of(bare)


def test_the_steps_of_an_extension() -> None:
    steps = steps_of(spec_in(plan_with(), Stage.BINDINGS, CELL))
    assert [step.title for step in steps] == [
        "lay the source out",
        "make the project's own wheel",
        "take it apart",
        "collect what it needs",
        "list what is in it",
    ]
    assert not any(step.network for step in steps)


def test_a_build_without_a_gpu_is_told_by_variables() -> None:
    always = {"CPPFLAGS": "-g0", "TORCH_NO_COMPILER_WRAPPER": "1"}
    cpu = {**always, "FORCE_CUDA": "0", "FORCE_ONLY_CPU": "1"}
    assert known_variables("Torch_Scatter", gpu=False) == cpu
    gpu = {**always, "FORCE_CUDA": "1", "FORCE_ONLY_CUDA": "1"}
    assert known_variables("torch-scatter", gpu=True) == gpu
    assert known_variables("flash-attn", gpu=True)["FLASH_ATTENTION_FORCE_BUILD"] == "TRUE"
    text = f'{TOOLED}[[override]]\nstage = "bindings"\nenv = {{ FORCE_CUDA = "2" }}\n'
    spec = spec_in(plan_with(text=text), Stage.BINDINGS, CELL)
    assert environment(spec)["FORCE_CUDA"] == "2"
    known = spec_in(plan_with(), Stage.BINDINGS, CELL).task
    assert known.table("env") == cpu  # in its fingerprint
    spec = spec_in(plan_with(), Stage.BINDINGS, f"{LINUX}/cu130-torch2.13/cp311")
    assert environment(spec) == gpu


def test_architectures_are_put_into_variables() -> None:
    text = re.sub('name = "[^"]*"', 'name = "natten"', TOOLED, count=1)
    override = '[[override]]\nstage = "bindings"\nenv = { ARCHS = "{sms};{sms,};{other}" }\n'
    plan = plan_with(text=f"{text}{override}")
    spec = spec_in(plan, Stage.BINDINGS, f"{LINUX}/cu130-torch2.13/cp311")
    archs = spec.compiled.words("archs")
    assert environment(spec)["NATTEN_CUDA_ARCH"] == ";".join(archs)
    sms = [arch.replace(".", "") for arch in archs]
    assert environment(spec)["ARCHS"] == f"{';'.join(sms)};{','.join(sms)};{{other}}"


def test_requirements_and_label_of_an_extension() -> None:
    build = config_of(
        f'{TOOLED}[build]\nrequires = ["numpy>=2"]\nlabel = "{{compute}}.t{{torch}}"\n'
    ).build
    assert build.requires == ("numpy>=2",)
    assert build.label == "{compute}.t{torch}"
    for line in ('requires = ["numpy @ https://a.example/b.whl"]', 'requires = ["-r x"]'):
        with pytest.raises(ConfigError, match="is not a requirement"):
            config_of(f"{TOOLED}[build]\n{line}\n")
    for label in ("a_b", "{python}", "+cpu", "{torch} "):
        with pytest.raises(ConfigError, match="is not a valid local version"):
            config_of(f'{TOOLED}[build]\nlabel = "{label}"\n')


def with_dependencies(text: str) -> str:
    return TOOLED.replace("[project]\n", f"[project]\ndependencies = {text}\n")


def test_dependencies_of_an_extension() -> None:
    text = with_dependencies('["torch-scatter>=2", "scipy", "scipy"]')
    plan = plan_with(text=text)
    task = spec_in(plan, Stage.PACKAGE, f"{CELL}/wheel").task
    assert task.words("dependencies") == ["scipy", "torch-scatter>=2"]
    before = {job.identifier: job.fingerprint for job in plan_with().jobs}
    same = [job.stage for job in plan.jobs if before[job.identifier] == job.fingerprint]
    assert set(same) >= {Stage.SOURCE, Stage.BINDINGS}  # nothing is compiled again
    conda = f"package:torch-scatter-2.1.2/{CELL}/conda"
    assert before[conda] == {job.identifier: job.fingerprint for job in plan.jobs}[conda]
    deep = f"x; {'(' * 3000}"
    broken = "x; os_name != 'y\\\\n'"
    for line in ("x @ https://a.example/b.whl", "-r x", "", deep, broken):
        with pytest.raises(ConfigError, match="is not a requirement"):
            config_of(with_dependencies(f'["{line}"]'))
    for line in ("torch", " torch==1.0", "Torch>=2", "torch [x] ; python_version>'3'"):
        with pytest.raises(ConfigError, match="requires the torch of its cell"):
            config_of(with_dependencies(f'["{line}"]'))
    others = config_of(with_dependencies('["torch-scatter", "torch.x"]')).project.dependencies
    assert others == ("torch-scatter", "torch.x")


def test_the_index_of_dependencies_is_that_of_the_cell() -> None:
    address = "https://a.example/torch-{release}+{compute}/"
    text = f'{TOOLED}[smoke]\nindexes = ["{address}", "{address}"]\n'
    plan = plan_with(text=text)
    for compute, release in (("cpu", "2.13"), ("cpu", "2.14"), ("cu130", "2.13")):
        path = f"{LINUX}/{compute}-torch{release}/cp311/wheel"
        task = spec_in(plan, Stage.SMOKE, path).task
        assert task.words("indexes") == [f"https://a.example/torch-{release}+{compute}/"]
    assert spec_in(plan_with(), Stage.SMOKE, f"{CELL}/wheel").task.words("indexes") == []
    for wrong, why in (
        ("channel", "is not the address of an index"),
        ("https://me:secret@a.example/", "an address must not contain a name"),
    ):
        with pytest.raises(ConfigError, match=why):
            config_of(f'{TOOLED}[smoke]\nindexes = ["{wrong}"]\n')
    for wrong in ("torch-{torch}", "{release", "release}"):
        with pytest.raises(ConfigError, match="has an unknown word in braces"):
            config_of(f'{TOOLED}[smoke]\nindexes = ["https://a.example/{wrong}/"]\n')


def test_a_smoke_job_takes_pinned_requirements_only() -> None:
    """Its spec may come from elsewhere; pip would take a second line for an option."""
    spec = spec_in(plan_with(), Stage.SMOKE, f"{CELL}/wheel")
    assert _torch_of(spec) == [f"torch==2.13.0+cpu --hash=sha256:{'5' * 64}"]
    settings = {**spec.task.settings, "requires": ("torch==2.13.0\n--extra-index-url=x --hash",)}
    task = msgspec.structs.replace(spec.task, settings=settings)
    with pytest.raises(ConfigError, match="is not a single version of a package"):
        _torch_of(msgspec.structs.replace(spec, tasks=(*spec.tasks[:-1], task)))


def test_a_project_says_how_it_is_built() -> None:
    assert read_build_system(None) == BuildSystem()
    assert read_build_system("[project]\nname = 'x'\n") == BuildSystem()
    text = "[build-system]\nrequires = ['a>=1']\nbuild-backend = 'b.c:d'\nbackend-path = ['.']\n"
    assert read_build_system(text) == BuildSystem(("a>=1",), "b.c:d", (".",))


@pytest.mark.parametrize(
    "text",
    [
        "[build-system",
        "a = " + "[" * 5000,
        "a = " + "9" * 5000,
        "[build-system]\nrequires = 'torch'",
        "[build-system]\nrequires = [5]",
        "[build-system]\nrequires = []\nbackend-path = 7",
        "[build-system]\nrequires = []\nbuild-backend = 3",
        "[build-system]\nbuild-backend = 'a'",
        "[build-system]\nrequires = ['a >']",
        f"[build-system]\nrequires = ['a; {'(' * 5000}']",
        '[build-system]\nrequires = ["a @ https://a.example/a.tar.gz\\n--no-binary=a"]',
        "[build-system]\nrequires = [\"a; os_name != 'x\\\\n--no-binary=a'\"]",
    ],
    ids=repr,
)
def test_requirements_of_a_project_are_each_on_one_line(text: str) -> None:
    """uv takes what follows a line break for options, and would build a source distribution."""
    with pytest.raises(ConfigError, match="of the source"):
        read_build_system(text)


def test_uv_gets_plain_requirements_only() -> None:
    address = "a @ https://a.example/${PASSWORD}/a.whl"
    for line in ("a\n--no-binary=a", address, "--editable=.", "-r x"):
        with pytest.raises(ConfigError, match="is not a requirement of a package in an index"):
            resolve_wheels([line], "3.11", "x86_64-manylinux_2_28")


def test_a_backend_of_the_project_itself_makes_the_wheel(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    backend = "class deep:\n class er:\n  def build_wheel(to): return f'x in {to}'\n"
    (tmp_path / "tools/own.py").write_text(backend, encoding="utf-8")
    program = build_wheel_program(BuildSystem((), "own:deep.er", ("tools",)), "dist", "links")
    argv = [sys.executable, "-c", program]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "made x in dist\n"
    assert (tmp_path / "dist").is_dir()


# ------------------------------------------------------------------- the package


def make_image(
    folder: Path, *, tag: str = "cp311-cp311-linux_x86_64", version: str = "2.1.2"
) -> Path:
    """Make what a project's own wheel contains: a module that needs torch and another library."""
    image, other = folder / "image", folder / "vendor"
    about = image / f"torch_scatter-{version}.dist-info"
    for path in (image / "torch_scatter", about, other, folder / "torch"):
        path.mkdir(parents=True)
    for name, soname in (("torch", "libtorch.so"), ("vendor", "libmetis.so.5")):
        place = folder / name / soname
        words = ["-shared", "-nostdlib", f"-Wl,-soname,{soname}", "-x", "c", "/dev/null"]
        subprocess.run(["cc", *words, "-o", place], check=True)
    words = ["-shared", "-nostdlib", "-Wl,--no-as-needed", "-x", "c", "/dev/null", "-x", "none"]
    libraries = [folder / "torch/libtorch.so", other / "libmetis.so.5"]
    module = image / "torch_scatter/_scatter_cpu.so"
    subprocess.run(["cc", *words, *map(str, libraries), "-o", str(module)], check=True)
    (about / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: torch_scatter\nVersion: {version}\nRequires-Dist: numpy\n",
        encoding="utf-8",
    )
    (about / "WHEEL").write_text(f"Wheel-Version: 1.0\nTag: {tag}\n", encoding="utf-8")
    (about / "RECORD").touch()
    return image


def assemble(folder: Path, cell: str = f"{CELL}/wheel", text: str = TOOLED) -> Path:
    spec = spec_in(plan_with(text=text), Stage.PACKAGE, cell)
    carried = folder / "torchyard-spec.json"
    carried.write_bytes(msgspec.json.encode(spec))
    out = folder / "out"
    out.mkdir()
    bill, scratch = bill_of(spec, folder), folder / "scratch"
    build = PackageBuild(spec, carried, bill, spec.compiled, "", folder, scratch, out)
    return assemble_extension(build, folder).package


def test_a_wheel_says_what_it_fits(tmp_path: Path) -> None:
    make_image(tmp_path)
    wheel = assemble(tmp_path)
    assert wheel.name == ("torch_scatter-2.1.2+pt213cpu-cp311-cp311-manylinux_2_28_x86_64.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        text = archive.read("torch_scatter-2.1.2+pt213cpu.dist-info/METADATA").decode()
        archive.extract("torch_scatter/_scatter_cpu.so", tmp_path)
    about = HeaderParser().parsestr(text)
    assert about["Version"] == "2.1.2+pt213cpu"
    assert about.get_all("Requires-Dist") == ["numpy", "torch==2.13.*"]
    libraries = [name for name in names if ".so" in name]
    assert len(libraries) == 2
    assert not [name for name in libraries if "torch." in name]
    (vendored,) = (name for name in libraries if "metis" in name)
    assert vendored.startswith("torch_scatter.libs/libmetis-")
    rpath = ["patchelf", "--print-rpath", str(tmp_path / "torch_scatter/_scatter_cpu.so")]
    said = subprocess.run(rpath, capture_output=True, text=True, check=True).stdout.strip()
    assert said == "$ORIGIN:$ORIGIN/../torch_scatter.libs"


def test_a_wheel_requires_what_its_project_does_not_declare(tmp_path: Path) -> None:
    make_image(tmp_path)
    wheel = assemble(tmp_path, text=with_dependencies('["torch-sparse", "numpy"]'))
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read("torch_scatter-2.1.2+pt213cpu.dist-info/METADATA").decode()
    requires = HeaderParser().parsestr(text).get_all("Requires-Dist")
    assert requires == ["numpy", "torch-sparse", "torch==2.13.*"]


def test_libraries_that_requirements_bring_stay_there(
    torchyard: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As metatensor-torch's: libmetatensor.so is in metatensor-core, by which it is found."""
    image = make_image(tmp_path)
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    site = tmp_path / "env/lib" / version / "site-packages"
    for name, library in (("numpy-core", "libmetis.so.5"), ("other", "libother.so")):
        about = site / f"{name.replace('-', '_')}-1.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Name: {name}\nVersion: 1\n", encoding="utf-8")
        (about / "RECORD").write_text(f"numpy/lib/{library},,\n", encoding="utf-8")
    metadata = next(image.glob("*.dist-info/METADATA"))
    required = metadata.read_text(encoding="utf-8").replace("numpy", "Numpy_Core (>=1)")
    metadata.write_text(required, encoding="utf-8")
    module = image / "torch_scatter/_scatter_cpu.so"
    own = "$ORIGIN/../numpy/lib:/usr/lib:$ORIGIN/sub:$ORIGIN/../.."
    subprocess.run(["patchelf", "--set-rpath", own, str(module)], check=True)
    shutil.rmtree(tmp_path / "vendor")
    monkeypatch.setenv("CC", "cc")
    command = ("tool", "collect-extension", image, "--environment", tmp_path / "env")
    done = torchyard(*command, "--to", tmp_path / "vendor")
    assert (done.code, done.out) == (0, "")
    wheel = assemble(tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if "metis" in name]
        archive.extract("torch_scatter/_scatter_cpu.so", tmp_path)
    rpath = ["patchelf", "--print-rpath", str(tmp_path / "torch_scatter/_scatter_cpu.so")]
    said = subprocess.run(rpath, capture_output=True, text=True, check=True).stdout.strip()
    assert said == "$ORIGIN:$ORIGIN/../torch_scatter.libs:$ORIGIN/../numpy/lib"
    assert "error linking" not in torchyard("check", wheel).out
    metadata.write_text(required.replace("Numpy_Core", "other"), encoding="utf-8")
    done = torchyard(*command, "--to", tmp_path / "vendor")
    assert "needs `libmetis.so.5`, which is neither built nor found" in done.err


def test_the_stable_abi_is_kept_in_the_tags(tmp_path: Path) -> None:
    make_image(tmp_path, tag="cp39-abi3-linux_x86_64")
    assert "-cp39-abi3-manylinux" in assemble(tmp_path).name


def test_a_wheel_for_any_python_gets_the_tags_of_its_cell(tmp_path: Path) -> None:
    """As sphericart-torch's, whose library does not use Python's functions."""
    make_image(tmp_path, tag="py3-none-linux_x86_64")
    assert "-cp311-cp311-manylinux" in assemble(tmp_path).name


def test_a_wheel_for_several_releases_requires_the_oldest_or_newer_ones(tmp_path: Path) -> None:
    make_image(tmp_path, tag="cp39-abi3-linux_x86_64")
    wheel = assemble(tmp_path, text=f'{TOOLED}[build]\nabi = "both"\n')
    assert wheel.name.startswith("torch_scatter-2.1.2+cpu-cp39-abi3-manylinux")
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read("torch_scatter-2.1.2+cpu.dist-info/METADATA").decode()
    assert HeaderParser().parsestr(text).get_all("Requires-Dist") == ["numpy", "torch>=2.13"]


def test_a_wheel_for_one_python_serves_no_other(tmp_path: Path) -> None:
    make_image(tmp_path)
    with pytest.raises(BuildError, match="cp311-cp311-linux_x86_64, but the file has abi = abi3"):
        assemble(tmp_path, text=f'{TOOLED}[build]\nabi = "abi3"\n')


@pytest.mark.parametrize(
    ("made", "why"),
    [
        ({"version": "2.1.3"}, "builds torch_scatter 2.1.3, not torch-scatter 2.1.2"),
        ({"tag": "cp312-cp312-linux_x86_64"}, "for cp312-cp312-linux_x86_64, not for cp311"),
    ],
)
def test_another_package_than_that_of_the_cell_is_refused(
    tmp_path: Path, made: dict[str, str], why: str
) -> None:
    make_image(tmp_path, **made)
    with pytest.raises(BuildError, match=why):
        assemble(tmp_path)


def test_a_wheel_in_which_nothing_was_compiled_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = make_image(tmp_path, tag="py3-none-any")
    project = tmp_path / "project"
    project.mkdir()
    check_compiled(image, project)
    (image / "torch_scatter/_scatter_cpu.so").unlink()
    with pytest.raises(BuildError, match="compiled nothing") as caught:
        check_compiled(image, project)
    assert "further up in the log" in str(caught.value.diagnostics[0].hint)
    text = 'import os\nif os.environ.get("BUILD_IT", "0") == "1":\n    pass\n'
    (project / "setup.py").write_text(text, encoding="utf-8")
    with pytest.raises(BuildError) as caught:
        check_compiled(image, project)
    hint = str(caught.value.diagnostics[0].hint)
    assert hint.startswith("its build reads BUILD_IT (setup.py:2). ")
    assert 'env = { BUILD_IT = "1" }' in hint
    monkeypatch.setenv("BUILD_IT", "1")
    with pytest.raises(BuildError) as caught:
        check_compiled(image, project)
    assert "further up in the log" in str(caught.value.diagnostics[0].hint)
