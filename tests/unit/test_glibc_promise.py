"""`[build] glibc`: what needs a newer system is refused by symbol, library and unit."""

import subprocess
from pathlib import Path

import pytest
from rich.console import Console
from tests.support.helpers import SMALL, config_of, plan_of

from torchyard.errors import BuildError, ConfigError
from torchyard.features.plan.report import plan_text
from torchyard.features.plan.use_case import plan_report
from torchyard.package.elf.file import read_elf, versioned_symbols
from torchyard.package.wheel.glibc_promise import check_glibc
from torchyard.plan.job_specs import make_job_spec
from torchyard.recipes import steps_of

CODE = """\
__asm__(".symver renewed, memcpy@GLIBC_2.14");
extern void *renewed(void *, const void *, unsigned long);
extern int getrandom(void *, unsigned long, unsigned);
int copy(char *to, char *from) { renewed(to, from, 8); return getrandom(to, 8, 0); }
"""
"""Needs getrandom of glibc 2.25, and memcpy of 2.14, as linkers name both."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A build directory with two units, linked into a library in `out`."""
    units = []
    for name, text in {"csrc/new.c": CODE, "csrc/plain.c": "int one(void) { return 1; }"}.items():
        source = tmp_path / name
        source.parent.mkdir(exist_ok=True)
        source.write_text(text, encoding="utf-8")
        unit = tmp_path / "temp" / f"{name.removesuffix('.c')}.o"
        unit.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["gcc", "-fPIC", "-c", source, "-o", unit], check=True)
        units.append(unit)
    (tmp_path / "out").mkdir()
    subprocess.run(["gcc", "-shared", *units, "-o", tmp_path / "out/_C.so"], check=True)
    return tmp_path


def test_symbols_have_the_versions_that_the_loader_looks_for(project: Path) -> None:
    library = project / "out/_C.so"
    found = {symbol: need.version for symbol, need in versioned_symbols(library)}
    assert found["getrandom"] == "GLIBC_2.25"
    assert found["memcpy"] == "GLIBC_2.14"
    elf = read_elf(library)
    assert elf is not None
    assert set(found.values()) == set(elf.versions)


@pytest.mark.parametrize("glibc", ["2.25", "2.28", "2.100"])
def test_a_promise_that_is_kept(project: Path, glibc: str) -> None:
    check_glibc(glibc, [project / "out", project / "missing"], project)


def test_a_broken_promise_names_symbol_library_and_unit(project: Path) -> None:
    with pytest.raises(BuildError) as refused:
        check_glibc("2.17", [project / "out"], project)
    assert str(refused.value) == (
        "it would not run with the promised glibc 2.17:\n"
        "_C.so needs `getrandom` in version GLIBC_2.25 of libc.so.6, for `temp/csrc/new.o`"
    )
    assert "`image` in [root]" in str(refused.value.diagnostics[0].hint)


def test_a_unit_in_a_static_library_is_found(project: Path) -> None:
    unit = project / "temp/csrc/new.o"
    subprocess.run(["ar", "rc", project / "temp/libnew.a", unit], check=True)
    unit.unlink()
    with pytest.raises(BuildError, match=r"for `temp/libnew\.a`"):
        check_glibc("2.17", [project / "out"], project)
    (project / "temp/libnew.a").unlink()
    with pytest.raises(BuildError, match="no unit of this build needs it"):
        check_glibc("2.17", [project / "out"], project)


def test_a_library_that_is_brought_along_does_not_count(project: Path) -> None:
    (project / "vendor").mkdir()
    (project / "vendor/libc.so.6").write_bytes(b"brought along")
    check_glibc("2.17", [project / "out", project / "vendor"], project)


PROMISE = '[toolchain]\n[build]\nglibc = "2.28"\n'


def test_a_plan_has_a_step_that_keeps_the_promise() -> None:
    plan, plain = plan_of(f"{SMALL}{PROMISE}"), plan_of(f"{SMALL}[toolchain]\n")
    cores = [(p, next(job for job in p.jobs if job.stage == "core")) for p in (plan, plain)]
    with_it, without = (steps_of(make_job_spec(*one)) for one in cores)
    more = [step.run[-4:] for step in with_it if step not in without]
    assert more == [("check-glibc", "2.28", "{out}/install", "{out}/vendor")]
    assert cores[0][1].fingerprint != cores[1][1].fingerprint


def test_a_plan_states_the_promise() -> None:
    shown = Console(width=200)
    with shown.capture() as said:
        shown.print(*plan_text(plan_report(plan_of(f"{SMALL}{PROMISE}"))))
    assert "promise: everything runs with glibc 2.28 or newer" in said.get()


@pytest.mark.parametrize("text", ["2", "2.28.1", "glibc 2.28", "3.0", ""])
def test_what_is_no_glibc_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a glibc version"):
        config_of(f'{SMALL}[build]\nglibc = "{text}"\n')
