"""Recipe `pytorch`: a core that is compiled once, and bindings for every Python.

The core job builds all targets that do not depend on Python, in a copy of the source, with the
project's backend. Its result is the whole tree as ninja left it. A bindings job restores that tree
at the same path with the same times, points CMake to its Python, and builds the rest.
"""

from shlex import quote

from msgspec.structs import replace

from torchyard.errors import PlanError
from torchyard.model.job_spec import JobSpec, Task
from torchyard.model.lock import CONDA
from torchyard.model.recipe import Stage
from torchyard.model.step import OWN, SHELL, Step
from torchyard.package.assemble.project import PROJECT
from torchyard.package.conda.linked import ENVIRONMENTS
from torchyard.package.versions import local_version
from torchyard.recipes.recipe import DevelopSteps, inventory_step, lay_out_step, promise_steps, tool
from torchyard.toolchain.summary import is_wanted
from torchyard.toolchain.variables import entries_variables

_TOOL = " ".join((*OWN, "tool"))
_PYTHON = "{work}/env/bin/python"

_CONFIGURE_ONLY = (
    "from scikit_build_core.build import build_wheel, wheel; import tempfile;"
    "describe = getattr(wheel, 'get_standard_metadata', None);"
    "drop = lambda table: dict((key, table[key]) for key in table if key != 'readme');"
    "wheel.get_standard_metadata = lambda found, *more, **named:"
    " describe(dict(found, project=drop(found['project'])), *more, **named);"
    "settings = dict([('build.targets', 'help'), ('install.components', 'nothing')]);"
    "settings |= dict([('build-dir', 'build'), ('wheel.exclude', '**')]);"
    "build_wheel(tempfile.mkdtemp(), settings)"
)
"""Makes an empty wheel: builds no target, installs nothing, and reads neither modules nor README.

What a core reads is compiled again when it changes.
"""

_CONFIGURE = {
    "setup.py": (_PYTHON, "setup.py", "build", "--cmake-only"),
    "scikit-build-core": (_PYTHON, "-c", _CONFIGURE_ONLY),
}
"""How to make each backend run only CMake."""

_WHEEL = {
    "setup.py": "from setuptools.build_meta import build_wheel; build_wheel('{work}/tmp/dist')",
    "scikit-build-core": "from scikit_build_core.build import build_wheel;"
    "settings = dict([('build-dir', 'build'), ('install.strip', 'false')]);"
    "build_wheel('{work}/tmp/dist', settings | dict([('build.targets', 'help')]))",
}
"""How to make each backend package the built files as a wheel.

scikit-build-core runs CMake before. Headers that the project's CMake code always writes are newer
than what was compiled then, so it must build no target: `help` only lists them.
"""

_AS_THE_WHEEL = {
    "setup.py": (),
    "scikit-build-core": (
        Step(run=_CONFIGURE["scikit-build-core"], name="configure as the wheel will"),
    ),
}
"""How to run CMake with all that a backend passes to it, before the bindings are compiled."""

_IN_PLACE = {
    "setup.py": (Step(run=(_PYTHON, "setup.py", "build_ext", "--inplace"), name="link modules"),),
    "scikit-build-core": (),
}
"""How each backend makes, in the source, the modules that CMake does not make."""

_METADATA = {"setup.py": "setuptools.build_meta", "scikit-build-core": "scikit_build_core.build"}
_DESCRIBE = (
    "import os; from {backend} import prepare_metadata_for_build_wheel as describe;"
    "os.makedirs('{{work}}/tmp/metadata', exist_ok=True); describe('{{work}}/tmp/metadata')"
)
_INSTALL_ALL = ("cmake", "--install", "build", "--prefix", "{build}/{name}")
"""Installs into the package's folder in the source, as setup.py does."""

_INITIAL = "build/torchyard.cmake"
"""A CMake script that sets the file's CMake entries before the project reads any."""

_EMPTY = "find . -mindepth 1 -delete"
"""Removes the files of an attempt that was killed during a step."""

_KEEP = """\
rm -rf {out}/tree
cp build/.ninja_log {out}/ninja_log
cp -al . {out}/tree"""
_RESTORE = f"""\
{_EMPTY}
{_TOOL} restore {{core}}/tree ."""
_COMPARE = "check-summary --spec {spec} build"
_PACK = "pack --spec {spec} --inputs {inputs} --scratch {build} --to {out}"
_COMPILE = f"""\
targets=$({_TOOL} core-targets build)
cmake --build build --target $targets"""
_INSTALL = f"""\
{_TOOL} install-script build {{out}}/install > build/install-core.cmake
cmake -P build/install-core.cmake"""


def steps(spec: JobSpec) -> tuple[Step, ...] | None:
    """Return the steps of a job, or None if this recipe has none for its stage."""
    match spec.task.stage:
        case Stage.CORE:
            return _core(spec)
        case Stage.BINDINGS:
            return _bindings(spec)
        case Stage.PACKAGE:
            return (tool(_PACK, "make the package"),)
        case _:
            return None


def _core(spec: JobSpec) -> tuple[Step, ...]:
    task = spec.task
    return (
        lay_out_step(_lay_out(spec)),
        *(Step(run=(*SHELL, line)) for line in task.words("prepare")),
        *_translation(task),
        tool("check-version --spec {spec}", "compare the tree's version"),
        replace(
            tool(f"keep-project --to {{out}}/{PROJECT}", "keep its licences and tests"),
            env={"PYTHONNOUSERSITE": "1"},  # the project may have put modules there
            copies="links",
        ),
        tool("ask build", "ask CMake to tell what it makes of it"),
        *_definitions(task),
        Step(run=_CONFIGURE[_backend(task)], name="configure"),
        tool("configure-again build", "configure again, as bindings will"),
        tool(_COMPARE, "compare it with what was asked for"),
        *_linalg(task),
        Step(run=(*SHELL, _COMPILE), name="compile the core"),
        Step(run=(*SHELL, _INSTALL), name="install the core"),
        tool("collect --spec {spec} {out}/install --to {out}/vendor", "collect what it needs"),
        inventory_step("{out}/install", "--vendor {out}/vendor"),
        *_environments(task),
        *promise_steps(spec, "{out}/install", "{out}/vendor"),
        Step(
            run=(*SHELL, _KEEP),
            name="keep what was built",
            copies="links",
            outputs=("install/lib/*", "tree/build/build.ninja"),
        ),
    )


def _bindings(spec: JobSpec) -> tuple[Step, ...]:
    backend = _backend(spec.compiled)
    return (
        lay_out_step(_RESTORE, "restore the core's build"),
        tool("repoint build", "tell CMake of this Python"),
        *_AS_THE_WHEEL[backend],
        tool("keep-times {core}/tree", "keep the times of what is unchanged"),
        tool("bind build --core {core}/ninja_log", "compile the bindings"),
        Step(run=(_PYTHON, "-c", _WHEEL[backend]), name="make the project's own wheel"),
        tool("unpack {work}/tmp/dist --core {core}/ninja_log --to {out}/image", "take it apart"),
        inventory_step("{out}/image"),
        *_environments(spec.task),
        *promise_steps(spec, "{out}/image"),
    )


def develop(spec: JobSpec) -> DevelopSteps:
    """Return the steps for developing in a tree."""
    backend = _backend(spec.compiled)
    program = _DESCRIBE.format(backend=_METADATA[backend])
    return DevelopSteps(
        bind=(tool("repoint build", "tell CMake of this Python"),),
        prepare=_IN_PLACE[backend],
        install=(Step(run=_INSTALL_ALL, name="install it into the package's folder"),),
        describe=Step(run=(_PYTHON, "-c", program), name="describe the project"),
    )


def _lay_out(spec: JobSpec) -> str:
    """Return a shell line that copies the source, and records a known commit for git."""
    lines = [_EMPTY, "cp -a {source}/. ."]
    commit = spec.commit
    if commit:
        lines += ["mkdir -p .git/objects .git/refs", f"echo {quote(commit)} > .git/HEAD"]
    return "\n".join(lines)


def _translation(task: Task) -> tuple[Step, ...]:
    """Return a step that runs the tree's own script for a compute platform: hipify, for ROCm."""
    script = quote(task.text("translate"))
    if "translate" not in task.settings:
        return ()
    line = f"if test -e {script}; then {_PYTHON} {script}; else echo there is no {script}; fi"
    return (Step(run=(*SHELL, line), name=f"translate the source by {script}"),)


def _definitions(task: Task) -> tuple[Step, ...]:
    """Return a step that writes the file's CMake entries to the script in `environment`."""
    if not task.table("cmake"):
        return ()
    return (tool(f"define --spec {{spec}} {_INITIAL}", "tell CMake what the file says"),)


def _environments(task: Task) -> tuple[Step, ...]:
    """Return a step that keeps what conda environments have, for the requirements of packages."""
    if CONDA not in task.settings:
        return ()
    line = f"keep-environments --spec {{spec}} {{out}}/{ENVIRONMENTS}"
    return (tool(line, "keep what its environments have"),)


def _linalg(task: Task) -> tuple[Step, ...]:
    """Return steps that build the linalg library without MAGMA first, for conda packages."""
    target = quote(task.text("linalg"))
    if "linalg" not in task.settings:
        return ()
    switch = "ON" if is_wanted("USE_MAGMA", task.table("env"), task.table("cmake")) else "OFF"
    line = (
        f"cmake -DUSE_MAGMA=OFF build\ncmake --build build --target {target}\n"
        f"plugin=$({_TOOL} artifact build {target})\n"
        'mkdir -p {out}/linalg\ncp "$plugin" {out}/linalg\n'
        f"cmake -DUSE_MAGMA={switch} build"
    )
    return (
        Step(run=(*SHELL, line), name=f"compile {target} without MAGMA"),
        tool(_COMPARE, "compare it again"),
    )


def environment(spec: JobSpec) -> dict[str, str]:
    """Return the variables of the project's build; the file's own take precedence."""
    core = spec.compiled
    facts = core.facts
    return {
        "PYTORCH_BUILD_VERSION": local_version(facts["version"], facts["compute"]),
        "PYTORCH_BUILD_NUMBER": "1",
        "CMAKE_BUILD_TYPE": "Release",
        "BUILD_TEST": "0",
        "USE_CCACHE": "0",  # otherwise a ccache on the machine would be used
        **(entries_variables(_INITIAL) if core.table("cmake") else {}),
        **core.table("env"),
    }


def _backend(task: Task) -> str:
    value = task.text("backend")
    if not value:
        msg = f"nothing says with what {task.id} is compiled"
        hint = 'add [toolchain] with compiler = "gcc"; `torchyard toolchain` lists compilers'
        raise PlanError(msg, hint=hint)
    return value
