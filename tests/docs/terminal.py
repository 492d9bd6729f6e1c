"""A terminal of 80 columns and 25 lines, as a person has it: tmux, in which commands are typed."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.docs.markdown import Typed
from tests.docs.scene import LIMIT, PIP, Scene, environment
from tests.support.forked import forked_program

COLUMNS, LINES = 80, 25

_PROMPT = """\
PS1='$ '
PROMPT_COMMAND='echo $? >"$TYPED/$((++typed)).part"; mv "$TYPED/$typed.part" "$TYPED/$typed"'
"""
"""Before each prompt, the exit status of the command before is written to a file."""


class Terminal:
    """A shell in tmux."""

    def __init__(self, scene: Scene, programs: Path) -> None:
        self._scene = scene
        self._typed = scene.folder / ".typed"
        self._typed.mkdir()
        self._count = 0
        (self._typed / "rc").write_text(PIP + _PROMPT, encoding="utf-8")
        env = {**environment(scene, programs), "TYPED": str(self._typed), "TERM": "xterm-256color"}
        for name in ("COLUMNS", "NO_COLOR", "TMUX"):
            env.pop(name, None)
        shell = ["bash", "--noprofile", "--rcfile", str(self._typed / "rc")]
        size = ["-x", str(COLUMNS), "-y", str(LINES)]
        self._tmux("-f", "/dev/null", "new-session", "-d", *size, *shell, env=env)
        self._wait()

    def _tmux(self, *words: str, env: dict[str, str] | None = None) -> str:
        argv = ["tmux", "-S", str(self._typed / "tmux"), *words]
        done = subprocess.run(
            argv, cwd=self._scene.start, env=env, check=True, capture_output=True, text=True
        )
        return done.stdout

    def _wait(self) -> int:
        """Wait for the next prompt, and return the exit status of the command before."""
        self._count += 1
        status, began = self._typed / str(self._count), time.monotonic()
        while not status.exists():
            assert time.monotonic() - began < LIMIT, self.screen()
            time.sleep(0.05)
        return int(status.read_text(encoding="utf-8"))

    def type(self, command: Typed, *, until: str | None = None) -> int:
        """Type a command, and return its exit status.

        One that goes on until it is stopped runs in the background; `until` is what it prints once
        it is ready.
        """
        text = self._scene.real(command.text)
        log = self._typed / "background"
        self._enter(f"(PATH=${{PATH#*:}}; exec {text}) >{log} 2>&1 &" if until else text)
        status = self._wait()
        began = time.monotonic()
        while until and until not in log.read_text(encoding="utf-8"):
            assert time.monotonic() - began < LIMIT, log.read_text(encoding="utf-8")
            time.sleep(0.05)
        return status

    def clear(self) -> None:
        """Let the next command be typed in the first line."""
        self._enter("clear")
        self._wait()

    def _enter(self, text: str) -> None:
        self._tmux("send-keys", "-l", "--", text)
        self._tmux("send-keys", "Enter")

    def screen(self, *, styled: bool = False) -> str:
        """Return what is on the screen; with `styled`, with its escape sequences."""
        return self._tmux("capture-pane", "-p", *(["-e"] if styled else []))

    def close(self) -> None:
        self._tmux("kill-server")


@contextmanager
def terminal_in(scene: Scene) -> Iterator[Terminal]:
    with forked_program(scene.folder / ".programs") as program:
        terminal = Terminal(scene, program.parent)
        try:
            yield terminal
        finally:
            terminal.close()
