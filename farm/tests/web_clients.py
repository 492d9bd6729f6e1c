"""Clients of the web page of a test farm."""

import base64
import http.client
import json
import os
from collections.abc import Mapping
from typing import NamedTuple, Self

from farm.tests.farms import TrialFarm
from tests.support.services import LOOPBACK

JSON = "application/json"
_TEXT, _CLOSE = 1, 8


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    text: str


class Visitor:
    """A browser: it keeps one cookie, and sends it with every request."""

    def __init__(self, farm: TrialFarm) -> None:
        self._line = http.client.HTTPConnection(LOOPBACK, farm.web, timeout=300)
        self.origin = f"http://{LOOPBACK}:{farm.web}"
        self.cookie = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._line.close()

    def send(
        self,
        method: str,
        path: str,
        body: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        cookies = {"Cookie": self.cookie} if self.cookie else {}
        self._line.request(method, path, body, {**cookies, **(headers or {})})
        with self._line.getresponse() as answer:
            text = answer.read().decode(errors="replace")
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, text)

    def log_in(self, user: str, password: str) -> Answer:
        known = base64.b64encode(f"{user}:{password}".encode()).decode()
        answer = self.send("GET", "/auth/login", headers={"Authorization": f"Basic {known}"})
        self.cookie = answer.headers.get("set-cookie", "").partition(";")[0]
        return answer

    def ask_for(
        self,
        verb: str,
        path: str,
        params: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> int:
        """Request an action of the master, and return the status."""
        body = {"jsonrpc": "2.0", "method": verb, "id": 1, "params": params or {}}
        given = {"Content-Type": JSON, **(headers or {})}
        return self.send("POST", f"/api/v2/{path}", json.dumps(body), given).status


def whisper(farm: TrialFarm, messages: list[dict[str, object]]) -> list[str]:
    """Send messages through the websocket, and return the answers."""
    line = http.client.HTTPConnection(LOOPBACK, farm.web, timeout=300)
    key = base64.b64encode(os.urandom(16)).decode()
    headers = {"Upgrade": "websocket", "Connection": "Upgrade"}
    headers |= {"Sec-WebSocket-Key": key, "Sec-WebSocket-Version": "13"}
    line.request("GET", "/ws", headers=headers)
    assert line.sock is not None
    with line.sock as sock, sock.makefile("rb") as answers:
        assert b" 101 " in answers.readline()
        while answers.readline().strip():
            pass
        told = []
        for message in messages:
            data = json.dumps(message).encode()
            assert len(data) < 126
            sock.sendall(bytes((0x80 | _TEXT, 0x80 | len(data), 0, 0, 0, 0)) + data)
            kind, length = answers.read(2)
            assert kind & 15 == _TEXT
            if length == 126:
                length = int.from_bytes(answers.read(2))
            told.append(answers.read(length).decode())
        return told
