"""A real browser for tests: Chromium, driven by chromedriver's W3C WebDriver protocol."""

import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from base64 import b64decode
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

_LOOPBACK = "127.0.0.1"
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_START_SECONDS = 600
_STARTS = 10


def _start_driver(log: Path) -> tuple[subprocess.Popen[bytes], int]:
    """Return a driver and the port on which it listens.

    With port 0 chromedriver lets the kernel choose one for IPv6 and ends if another process has the
    same one for IPv4: it is started again then.
    """
    for _ in range(_STARTS):
        with log.open("wb") as output:
            driver = subprocess.Popen(
                ["chromedriver", "--port=0"], stdout=output, stderr=subprocess.STDOUT
            )
        try:
            if port := _port(driver, log):
                return driver, port
        except BaseException:
            _stop(driver)
            raise
    raise AssertionError(log.read_text("utf-8"))


def _port(driver: subprocess.Popen[bytes], log: Path) -> int | None:
    """Return the port of a driver once it listens there, or None if it has ended."""
    began = time.monotonic()
    while True:
        ended = driver.poll() is not None
        if told := re.search(r"started successfully on port (\d+)", log.read_text("utf-8")):
            return int(told[1])
        if ended:
            return None
        assert time.monotonic() - began < _START_SECONDS, log.read_text("utf-8")
        time.sleep(0.05)


def _stop(driver: subprocess.Popen[bytes]) -> None:
    driver.kill()
    driver.wait()


class Browser:
    """A headless browser with one window and its own profile."""

    def __init__(self, log: Path, *, width: int = 1280, height: int = 900) -> None:
        if not (shutil.which("chromedriver") and shutil.which("chromium")):
            pytest.skip("chromedriver and chromium are not installed")
        self._driver, port = _start_driver(log)
        self._url = f"http://{_LOOPBACK}:{port}"
        try:
            self._session = self._begin(width, height)
        except BaseException:
            _stop(self._driver)
            raise

    def _begin(self, width: int, height: int) -> str:
        arguments = [
            "--headless=new",
            "--no-sandbox",
            "--hide-scrollbars",
            f"--window-size={width},{height}",
        ]
        options = {
            "acceptInsecureCerts": True,
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        made = self._call("POST", "/session", {"capabilities": {"alwaysMatch": options}})
        assert isinstance(made, dict)
        session = f"/session/{made['sessionId']}"
        self._call("POST", f"{session}/timeouts", {"script": 20_000})
        return session

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._call("DELETE", self._session)
        finally:
            _stop(self._driver)

    def _call(self, method: str, path: str, body: object = None) -> object:
        data = None if method == "GET" else json.dumps(body or {}).encode()
        asked = urllib.request.Request(self._url + path, data, method=method)  # noqa: S310 - http
        try:
            with urllib.request.urlopen(asked, timeout=300) as reply:  # noqa: S310 - http
                value: object = json.load(reply)["value"]
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(error.read().decode()) from None
        return value

    def tell(self, path: str, body: object) -> object:
        """Send a command of the session, such as `url`."""
        return self._call("POST", f"{self._session}/{path}", body)

    def open(self, url: str) -> None:
        self.tell("url", {"url": url})

    def run(self, script: str, *args: object) -> object:
        """Run the body of a function in the page; promises are awaited."""
        return self.tell("execute/sync", {"script": script, "args": args})

    def press(self, *keys: str) -> None:
        """Press keys, one after another, wherever the focus is."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        source = {"type": "key", "id": "keyboard", "actions": actions}
        self.tell("actions", {"actions": [source]})

    def click(self, css: str) -> None:
        found = self.tell("element", {"using": "css selector", "value": css})
        assert isinstance(found, dict)
        self.tell(f"element/{found[_ELEMENT]}/click", {})

    def until(self, script: str, *args: object, seconds: float = _START_SECONDS) -> object:
        """Run a script until it returns a true value, and return that."""
        began = time.monotonic()
        while not (value := self.run(script, *args)):
            assert time.monotonic() - began < seconds, script
            time.sleep(0.02)
        return value

    def devtools(self, command: str, **values: object) -> object:
        return self.tell("goog/cdp/execute", {"cmd": command, "params": values})

    def width(self, pixels: int, *, scale: float = 1) -> None:
        """Set the width of the screen."""
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=pixels,
            height=900,
            deviceScaleFactor=scale,
            mobile=False,
        )

    def picture(self) -> bytes:
        """Return the whole page as a PNG."""
        return self._shot(beyond=True)

    def screen(self) -> bytes:
        """Return the visible part of the page as a PNG."""
        return self._shot(beyond=False)

    def _shot(self, *, beyond: bool) -> bytes:
        shot = self.devtools("Page.captureScreenshot", format="png", captureBeyondViewport=beyond)
        assert isinstance(shot, dict)
        return b64decode(str(shot["data"]))

    def complaints(self) -> list[str]:
        """Return the messages of the browser's console since the last call."""
        said = self.tell("se/log", {"type": "browser"})
        assert isinstance(said, list)
        return [str(entry["message"]) for entry in said]
