"""Screenshots of a real farm for the documentation: `python -m farm.tests.screenshots docs/images`.

The committed ones were reduced to 255 colours with Pillow.
"""

import json
import sys
import tempfile
from pathlib import Path

from farm.tests.farms import TrialFarm
from farm.tests.showcase import shown_text
from tests.support.browser import Browser
from tests.support.helpers import make_project
from tests.support.services import LOOPBACK

_CELL = "linux-x86_64/cpu-mkl/cp312/wheel"
_DARK = [{"name": "prefers-color-scheme", "value": "dark"}]
_LONG = 600


def take_pictures(farm: TrialFarm, browser: Browser, folder: Path) -> None:
    """Build a plan, and take screenshots while it runs and after a failure."""
    web = f"http://{LOOPBACK}:{farm.web}/"
    for pace in (0.0, 0.001):  # so that cells have a history
        farm.file.write_text(shown_text(pace), encoding="utf-8")
        farm.wait_done(farm.submit(f"torch-2.14.0/{_CELL}"))
    farm.file.write_text(shown_text(0.5), encoding="utf-8")
    plan = f"{web}plugins/plans/{farm.submit()}"

    browser.width(1280)
    browser.open(plan)
    browser.until(
        "return document.querySelector('#failures li') &&"
        " /compile, [0-9]+ of/.test(document.querySelector('#running').textContent)",
        seconds=_LONG,
    )
    (folder / "farm-plan-desktop.png").write_bytes(browser.picture())
    browser.devtools("Emulation.setEmulatedMedia", features=_DARK)
    browser.width(390, scale=2)
    (folder / "farm-plan-phone.png").write_bytes(browser.picture())
    browser.devtools("Emulation.setEmulatedMedia", features=[])
    browser.width(1280)

    job = str(browser.run("return document.querySelector('#running a').href"))
    path = f"api/v2/{job.partition('#/')[2]}/steps/run"
    (step,) = json.loads(farm.text(path))["steps"]
    browser.open(f"{job}/steps/{step['number']}/logs/log")
    browser.until("return /unit_[0-9]+/.test(document.body.innerText)", seconds=_LONG)
    (folder / "farm-log.png").write_bytes(browser.picture())

    browser.open(f"{web}#/builders/{farm.history(f'torch/{_CELL}')}")
    browser.until("return document.querySelectorAll('tbody tr').length > 3", seconds=_LONG)
    (folder / "farm-history.png").write_bytes(browser.picture())


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="farm-") as name:
        base = Path(name)
        file = make_project(base / "project", shown_text(0))
        with (
            TrialFarm(base / "farm", file, "sqlite:///state.sqlite", ("w1", "w2")) as farm,
            Browser(base / "browser.log") as browser,
        ):
            farm.start_master()
            farm.start_workers()
            take_pictures(farm, browser, Path(sys.argv[1]))


if __name__ == "__main__":
    main()
