"""A real browser for tests: headless Chromium, driven over the pipe of its DevTools protocol.

The pipe needs no package and no port: requests go to the browser's file descriptor 3 and answers come from 4, JSON
with a zero byte at the end.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
# No GPU, no sandbox (containers run as root), and no calls home.
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
PATIENCE = 120  # seconds for an answer: a busy machine is no failure, a browser that hangs is


def find_browser() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Page:
    """One open page, with everything its console and its log said."""

    def __init__(self, send: int, receive: int) -> None:
        self._send, self._receive, self._buffer = send, receive, b""
        self._session: str | None = None
        self._number = 0
        self.complaints: list[str] = []
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """A request of the protocol and its answer; what happens meanwhile is noted."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._send, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def open(self, url: str) -> None:
        """Opens a page and waits until all of it is there."""
        self.call("Page.navigate", url=url)
        while self.evaluate("document.readyState + ' ' + location.href") != f"complete {url}":
            time.sleep(0.05)

    def evaluate(self, expression: str) -> Any:
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def look(self, width: int, height: int = 900, scheme: str = "light") -> None:
        """Sets the size of the window and whether the reader likes it light or dark."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path: Path, selector: str | None = None) -> None:
        """A picture of the whole page, or of an element of it."""
        clip = {}
        if selector:
            box = self.evaluate(f"JSON.stringify(document.querySelector({selector!r}).getBoundingClientRect())")
            clip = {"clip": {**{k: json.loads(box)[k] for k in ("x", "y", "width", "height")}, "scale": 1}}
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True, **clip)
        path.write_bytes(base64.b64decode(shot["data"]))

    def pdf(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True)["data"]))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select.select([self._receive], [], [], PATIENCE)[0]:
                raise TimeoutError("the browser does not answer")
            data = os.read(self._receive, 1 << 20)
            if not data:
                raise RuntimeError("the browser has ended")
            self._buffer += data
        line, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(line)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, event: str | None, params: dict[str, Any]) -> None:
        if event == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))
        elif event == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append(str(params["args"]))
        elif event == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"]["text"])
        elif event == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])


@contextmanager
def open_browser(profile: Path) -> Iterator[Page]:
    """A new browser with an empty profile in a folder of its own."""
    program = find_browser()
    assert program is not None
    browser_reads, send = os.pipe()
    receive, browser_writes = os.pipe()

    def connect() -> None:
        # By way of high numbers: 3 and 4 may be taken by the pipes themselves.
        reads, writes = os.dup2(browser_reads, 100), os.dup2(browser_writes, 101)
        os.dup2(reads, 3)
        os.dup2(writes, 4)

    process = subprocess.Popen(
        [program, *FLAGS, f"--user-data-dir={profile}"],
        pass_fds=(3, 4),
        preexec_fn=connect,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(browser_reads)
    os.close(browser_writes)
    try:
        yield Page(send, receive)
    finally:
        os.close(send)  # at the end of its pipe the browser goes by itself
        os.close(receive)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
