"""A real browser without a window, driven over Chrome's DevTools protocol."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from websockets.sync.client import connect

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def browser_path() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Headless:
    """One page of one browser. What it asks for from anywhere but 127.0.0.1 cannot be reached."""

    def __init__(self, *, width: int = 1400, height: int = 900, dark: bool = False) -> None:
        self.home = tempfile.mkdtemp(prefix="headless-")
        flags = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
            "--remote-debugging-port=0", f"--user-data-dir={self.home}",
            f"--window-size={width},{height}", "--hide-scrollbars",
        ]  # fmt: skip
        if dark:
            flags.append("--blink-settings=preferredColorScheme=0")
        self.process = subprocess.Popen(
            [browser_path(), *flags, "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "DBUS_SESSION_BUS_ADDRESS": "disabled:"},
        )
        self._stack = ExitStack()
        self._stack.callback(self._end)
        try:
            self._begin(width, height)
        except BaseException:
            self.close()
            raise

    def _begin(self, width: int, height: int) -> None:
        self.asked: list[str] = []
        self.complaints: list[str] = []
        self._number = 0
        self._socket = self._stack.enter_context(
            connect(self._address(), max_size=None, proxy=None, ping_interval=None)
        )
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Performance.enable", timeDomain="threadTicks")
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    def _address(self) -> str:
        details = Path(self.home) / "DevToolsActivePort"
        until = time.monotonic() + 60
        while time.monotonic() < until:
            lines = details.read_text().split() if details.exists() else []
            if len(lines) == 2:
                return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
            assert self.process.poll() is None, "the browser ended"
            time.sleep(0.05)
        raise TimeoutError("the browser says no port")

    def call(self, method: str, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if getattr(self, "_session", None):
            message["sessionId"] = self._session
        self._socket.send(json.dumps(message))
        while True:
            answer = json.loads(self._socket.recv(timeout=60))
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self._note(answer)

    def _note(self, event) -> None:
        method, details = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            self.asked.append(details["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(details["exceptionDetails"].get("exception")))
        elif method == "Log.entryAdded" and details["entry"]["level"] == "error":
            self.complaints.append(details["entry"]["text"])

    def run(self, script: str):
        """Value of a script; promises are awaited."""
        answer = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def go(self, url: str, ready: str) -> None:
        self.call("Page.navigate", url=url)
        until = time.monotonic() + 60
        while not self.run(f"Boolean({ready})"):
            assert time.monotonic() < until, f"never: {ready}; {self.complaints}"
            time.sleep(0.05)

    def act(self, action: str, ready: str) -> float:
        """Milliseconds from an action until a condition holds and that is painted."""
        return self.run(
            f"""(async () => {{
              const started = performance.now();
              {action};
              while (!({ready})) {{
                if (performance.now() - started > 20000) throw new Error({json.dumps(ready)});
                await new Promise((go) => setTimeout(go));
              }}
              await new Promise((go) => requestAnimationFrame(() => {{
                const channel = new MessageChannel();
                channel.port1.onmessage = go;
                channel.port2.postMessage(0);
              }}));
              return performance.now() - started;
            }})()"""
        )

    def cpu_ms(self) -> float:
        """CPU time of the page's thread so far: the machine's load is not in it."""
        found = self.call("Performance.getMetrics")["metrics"]
        return 1000 * next(m["value"] for m in found if m["name"] == "TaskDuration")

    def key(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            extra = {"text": key} if len(key) == 1 and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **extra)

    def picture(self, path: Path) -> None:
        data = self.call("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))

    def close(self) -> None:
        self._stack.close()

    def _end(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)
