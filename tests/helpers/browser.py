"""Pages in headless Chromium with the network off, driven by its debugging protocol."""

import asyncio
import base64
import json
import shutil
import subprocess
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

SOFTWARE_3D = ("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
"""Arguments for pictures in three dimensions without a graphics card."""
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


def chromium():
    """The browser's program, or None."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class Tab:
    """One page. `console` has its errors and warnings."""

    def __init__(self, socket):
        self.socket, self.sent, self.console = socket, 0, []

    async def do(self, method, **parameters):
        self.sent += 1
        number = self.sent
        message = {"id": number, "method": method, "params": parameters}
        await self.socket.write_message(json.dumps(message))
        while True:
            answer = json.loads(await asyncio.wait_for(self.socket.read_message(), 60.0))
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]
            self._note(answer)

    def _note(self, event):
        about = event.get("params", {})
        if event["method"] == "Runtime.exceptionThrown":
            self.console.append(json.dumps(about["exceptionDetails"])[:500])
        elif event["method"] == "Runtime.consoleAPICalled" and about["type"] in (
            "error",
            "warning",
        ):
            self.console.append(json.dumps(about["args"])[:500])
        elif event["method"] == "Log.entryAdded":
            self.console.append(about["entry"]["text"])

    async def evaluate(self, expression):
        found = await self.do(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def until(self, expression, seconds=30.0):
        for _ in range(int(seconds * 10)):
            if await self.evaluate(expression):
                return
            await asyncio.sleep(0.1)
        raise TimeoutError(f"{expression}; the console says {self.console}")

    async def drag(self, start, end):
        for kind, (x, y) in (
            ("mouseMoved", start),
            ("mousePressed", start),
            ("mouseMoved", end),
            ("mouseReleased", end),
        ):
            button = "none" if kind == "mouseMoved" and (x, y) == start else "left"
            await self.do(
                "Input.dispatchMouseEvent",
                type=kind,
                x=x,
                y=y,
                button=button,
                buttons=1,
                clickCount=1,
            )

    async def screenshot(self, path):
        found = await self.do("Page.captureScreenshot", captureBeyondViewport=True)
        Path(path).write_bytes(base64.b64decode(found["data"]))


@asynccontextmanager
async def page(path, width=1240, height=900, arguments=()):
    """A tab with a local file or the page of a server of this machine, loaded.

    Nothing else on the network can be reached from it.
    """
    from tornado.websocket import websocket_connect

    served = str(path).startswith(("http://127.0.0.1:", "about:"))
    address = str(path) if served else Path(path).resolve().as_uri()
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [
                chromium(),
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
                f"--user-data-dir={folder}",
                f"--window-size={width},{height}",
                "--remote-debugging-port=0",
                "--host-resolver-rules=MAP * ~NOTFOUND" + ", EXCLUDE 127.0.0.1" * served,
                *arguments,
                "about:blank",
            ],
            stderr=subprocess.DEVNULL,
        )
        try:
            tab = Tab(await websocket_connect(await _address(Path(folder)), max_message_size=2**28))
            for domain in ("Runtime", "Log", "Page"):
                await tab.do(f"{domain}.enable")
            await tab.do("Page.navigate", url=address)
            await tab.until("document.readyState === 'complete'")
            yield tab
            tab.socket.close()
        finally:
            process.terminate()
            process.wait(20)


async def _address(folder):
    """The address of the browser's first page."""
    from tornado.httpclient import AsyncHTTPClient

    port = folder / "DevToolsActivePort"
    for _ in range(300):
        if port.exists() and port.read_text().strip():
            break
        await asyncio.sleep(0.1)
    number = port.read_text().split()[0]
    answer = await AsyncHTTPClient().fetch(f"http://127.0.0.1:{number}/json/list")
    pages = [x for x in json.loads(answer.body) if x["type"] == "page"]
    return pages[0]["webSocketDebuggerUrl"]
