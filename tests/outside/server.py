"""A real server for tests that look at it from outside, and the tools that they look with."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
SESSIOND = TARGET / "debug" / "sessiond"
SESSIONCTL = TARGET / "debug" / "sessionctl"
TOOLS = ROOT / "tests" / "tools" / "bin"
VENV = ROOT / "tests" / "tools" / "venv" / "bin"

# Longest wait for anything.
DEADLINE = 60

CONFIG = """
default_agent = "scripted"
[agents.scripted]
engine = "scripted"
"""


def clean_environment(**more: str) -> dict[str, str]:
    """The environment without what would reach into the server or its clients."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("SESSIONPLANE_") and k != "FAILPOINTS"}
    return kept | more


def run(*words: object, check: bool = True, **options) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end; its output is kept as text. A failure says what was said."""
    options.setdefault("env", clean_environment())
    options.setdefault("timeout", DEADLINE * 5)
    words = [str(word) for word in words]
    ended = subprocess.run(words, text=True, capture_output=True, **options)
    if check and ended.returncode != 0:
        raise AssertionError(f"{words} exited with {ended.returncode}\n{ended.stdout}\n{ended.stderr}")
    return ended


def wait_until(what, why: str):
    """Waits until `what` gives something true, and returns it."""
    until = time.monotonic() + DEADLINE
    while time.monotonic() < until:
        found = what()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"not within {DEADLINE} s: {why}")


class Server:
    """A server in a folder of its own. It may be killed and started again."""

    def __init__(self, config: str = CONFIG, program: Path = SESSIOND, listen: str = "127.0.0.1:0", **options):
        self.folder = Path(tempfile.mkdtemp(prefix="sessionplane-outside-"))
        self.config = self.folder / "config.toml"
        self.config.write_text(config)
        self.data_dir = self.folder / "data"
        self.ready_file = self.folder / "ready.json"
        self.program, self.listen, self.options = program, listen, options
        self.more = []
        self.process = None
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def start(self, *more: str) -> None:
        self.more = list(more) or self.more
        words = [self.program, "--config", self.config, "--data-dir", self.data_dir, "--ready-file", self.ready_file]
        words += ["--listen", self.listen, *self.more]
        log = (self.folder / "log").open("a")
        options = {"env": clean_environment(), "cwd": self.folder} | self.options
        self.process = subprocess.Popen(
            [str(word) for word in words], stdin=subprocess.DEVNULL, stdout=log, stderr=log, **options
        )
        log.close()
        wait_until(lambda: self.ready_file.exists() or self.process.poll() is not None, "it is ready")
        assert self.ready_file.exists(), self.log()
        self.ready = json.loads(self.ready_file.read_text())
        # Who comes back finds the server where it was.
        self.listen = self.address

    def log(self) -> str:
        return (self.folder / "log").read_text()

    @property
    def address(self) -> str:
        """HOST:PORT, or unix:/PATH."""
        return self.ready["address"].split("://")[-1]

    @property
    def token(self) -> str:
        return (self.data_dir / "owner.token").read_text().strip()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(DEADLINE)
        self.ready_file.unlink(missing_ok=True)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(DEADLINE)

    def ctl(self, *words: object, **options) -> subprocess.CompletedProcess[str]:
        where = ["--address", self.ready["address"], "--data-dir", self.data_dir]
        return run(SESSIONCTL, *where, *words, **options)

    def close(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait(DEADLINE)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_error) -> None:
        self.close()
