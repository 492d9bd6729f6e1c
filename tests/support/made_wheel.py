"""Small valid wheels, and job specs to embed in them."""

import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import msgspec

from torchyard.model.job_spec import SPEC_FILE, JobSpec
from torchyard.model.recipe import Stage
from torchyard.package.sbom.bill import bill_of
from torchyard.package.sbom.component import SBOM_FILE
from torchyard.package.sbom.cyclonedx import encode_bill
from torchyard.plan.graph import Plan
from torchyard.plan.job_specs import make_job_spec


def make_wheel(
    folder: Path,
    name: str = "demo",
    version: str = "1.0",
    *,
    tag: str = "py3-none-any",
    requires: Iterable[str] = (),
    more: str = "",
    spec: JobSpec | None = None,
    text: str = "x = 1\n",
) -> Path:
    """Write a wheel with one module; `more` are further lines of its METADATA."""
    folder.mkdir(parents=True, exist_ok=True)
    about = f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {line}\n" for line in requires)
    pure = str(tag.endswith("-any")).lower()
    files = {
        f"{name}/__init__.py": text,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        f"{needs}{more}",
        f"{about}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: {pure}\n"
        f"Tag: {tag}\n",
    }
    if spec is not None:
        files[f"{about}/{SPEC_FILE}"] = msgspec.json.encode(spec).decode()
        files[f"{about}/sboms/{SBOM_FILE}"] = encode_bill(bill_of(spec, folder)).decode()
    lines = [f"{path},sha256={_digest(content)},{len(content)}" for path, content in files.items()]
    files[f"{about}/RECORD"] = "\n".join([*lines, f"{about}/RECORD,,"]) + "\n"
    path = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in files.items():
            archive.writestr(zipfile.ZipInfo(member), content)
    return path


def _digest(content: str) -> str:
    return urlsafe_b64encode(sha256(content.encode()).digest()).rstrip(b"=").decode()


def spec_for(plan: Plan, glob: str) -> JobSpec:
    """The order of the one package of a plan whose path ends so."""
    jobs = (job for job in plan.jobs if job.stage is Stage.PACKAGE)
    (job,) = [job for job in jobs if job.path.endswith(glob)]
    return make_job_spec(plan, job)
