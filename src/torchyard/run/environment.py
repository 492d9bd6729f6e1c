"""The environment of a job, composed from scratch: steps see only these variables."""

from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType

from torchyard.config.credentials import credentials
from torchyard.config.steps import is_secret
from torchyard.host.process import bring_program
from torchyard.host.secrets import caller_environment
from torchyard.host.snapshot import EPOCH
from torchyard.model.job_spec import Task
from torchyard.model.recipe import Stage
from torchyard.toolchain.variables import SYSTEM_PATH
from torchyard.toolchain.variables import compose as in_front

NOTHING: Mapping[str, str] = MappingProxyType({})

_BUILD = {"CMAKE_GENERATOR": "Ninja"}
"""Variables of every build, in jobs and outside of them."""


def job_environment(
    task: Task,
    work: str,
    flags: str | None,
    tools: Mapping[str, str] = NOTHING,
    *,
    foreign: bool = False,
) -> dict[str, str]:
    """Return the environment of a job's steps, without the additions of single steps.

    `work` is the steps' directory. A `foreign` job gets nothing from the caller. No job gets what
    is probably a secret: a file may not ask for it, and a job may come from elsewhere than a file.
    """
    env = {
        "PATH": SYSTEM_PATH,
        "HOME": f"{work}/home",
        "TMPDIR": f"{work}/tmp",  # noqa: S108 - its own
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "TERM": "dumb",
        "SOURCE_DATE_EPOCH": str(EPOCH),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "NINJA_STATUS": "[%f/%t] ",
        **_BUILD,
    }
    env = in_front(env, tools)
    if flags:
        env["MAKEFLAGS"] = flags
    if not foreign:
        passed = caller_environment()
        wanted = (name for name in task.words("pass_env") if not is_secret(name))
        env |= {name: passed[name] for name in wanted if name in passed}
        env |= credentials() if task.stage is Stage.PUBLISH else {}
    return env | task.table("env")


def cell_variables(task: Task, tools: Mapping[str, str], programs: str) -> dict[str, str]:
    """Return the variables that a shell needs to compile like a job.

    `programs` is the directory of torchyard's programs.
    """
    return in_front(in_front(_BUILD, tools), {"PATH": programs}) | task.table("env")


def bring_ninja(folder: Path) -> None:
    """Put torchyard's ninja first on a job's PATH.

    The system's is often too old for a jobserver.
    """
    folder.mkdir(parents=True, exist_ok=True)
    bring_program("ninja", folder / "ninja")


def without_programs(
    names: Collection[str], folder: Path, seen_as: str, root: str = ""
) -> dict[str, str]:
    """Return substitutes for the directories of a system's PATH with any of these programs.

    They are below `folder`, which steps see at `seen_as`, and link all other programs.
    """
    replaced: dict[str, str] = {}
    for directory in SYSTEM_PATH.split(":"):
        real, links = Path(f"{root}{directory}"), Path(f"{folder}{directory}")
        if not any((real / name).is_file() for name in names):
            continue
        replaced[directory] = f"{seen_as}{directory}"
        links.mkdir(parents=True, exist_ok=True)
        wanted, made = ({path.name for path in where.iterdir()} for where in (real, links))
        wanted -= {*names}
        for name in wanted - made:
            (links / name).symlink_to(f"{directory}/{name}")
        for name in made - wanted:
            (links / name).unlink()
    return replaced
