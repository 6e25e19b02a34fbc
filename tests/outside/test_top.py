"""`sessionctl top` on a real terminal: what a person sees there, and what the keys do."""

import os
import signal
import subprocess
import unittest

from server import DEADLINE, SESSIONCTL, Server, clean_environment, run, wait_until

ASKS = 'ask deploy approval "Deploy?"\nwait-answers\nsay "Done."'


class Pane:
    """A terminal of tmux, in which a program runs until it ends."""

    def __init__(self, server: Server, *words: object):
        self.socket = server.folder / "tmux"
        script = " ".join(f"'{word}'" for word in words)
        # What the program left there can be seen until the pane is closed.
        self.tmux("new-session", "-d", "-x", "100", "-y", "24", f"{script}; echo left: $?; exec cat")

    def tmux(self, *words: str) -> str:
        environment = clean_environment(LANG="C.UTF-8", LC_ALL="C.UTF-8")
        return run("tmux", "-u", "-f", "/dev/null", "-S", self.socket, *words, env=environment).stdout

    def text(self) -> str:
        return self.tmux("capture-pane", "-p")

    def until(self, is_so, why: str) -> None:
        try:
            wait_until(lambda: is_so(self.text()), why)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.text()}") from None

    def shows(self, *texts: str) -> None:
        """Waits until a line has all of these in it."""
        self.until(lambda pane: any(all(text in line for text in texts) for line in pane.splitlines()), f"{texts}")

    def press(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    def types(self, text: str) -> None:
        self.tmux("send-keys", "-l", text)

    def resize(self, columns: int, lines: int) -> None:
        self.tmux("resize-window", "-x", str(columns), "-y", str(lines))

    def close(self) -> None:
        self.tmux("kill-server")


class Top(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.close)
        self.where = ["--address", self.server.ready["address"], "--data-dir", self.server.data_dir]
        self.pane = Pane(self.server, SESSIONCTL, *self.where, "top")
        self.addCleanup(self.pane.close)

    def invoke(self, name: str, scenario: str) -> subprocess.Popen:
        words = [SESSIONCTL, *self.where, "invoke", name, scenario]
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "env": clean_environment()}
        child = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, **options)
        self.addCleanup(child.wait, DEADLINE)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.kill)
        return child

    def test_c47_c25_a_fleet_is_seen_answered_and_kept_over_a_restart(self):
        pane = self.pane
        pane.shows("no session yet")
        self.server.ctl("new", "docs")
        pane.shows("dormant", "docs", "scripted")
        first = self.invoke("docs", ASKS)
        pane.shows("Needs you 1")
        pane.shows("needs input", "docs")
        pane.resize(140, 30)
        # Beside the table now, not beneath it.
        pane.shows("needs input", "docs", "? Deploy?")
        pane.resize(80, 20)
        pane.until(lambda text: all(len(line) <= 80 for line in text.splitlines()), "it is drawn in its new size")
        pane.shows("needs input", "docs")

        self.server.kill()
        pane.shows("connection lost, trying again")
        self.server.start()
        self.assertNotEqual(first.wait(DEADLINE), 0, "its run was cut")
        pane.until(lambda text: "connection lost" not in text, "it is connected again")
        pane.shows("Needs you 0")
        pane.shows("dormant", "docs")

        second = self.invoke("docs", ASKS)
        pane.shows("needs input", "docs")
        pane.press("g", "a")
        pane.shows("answer docs (allow|deny):")
        pane.types("allow")
        pane.shows("(allow|deny): allow_")
        pane.press("Enter")
        pane.shows("answered")
        said, _ = second.communicate(timeout=DEADLINE)
        self.assertEqual(second.returncode, 0, said)
        self.assertIn("deploy: allow", said)
        pane.shows("ready", "docs")

        pane.press("p")
        pane.shows("paused", "docs")
        refused = self.server.ctl("invoke", "docs", 'say "no"', check=False)
        self.assertIn("session_paused", refused.stderr)
        pane.press("q")
        # The terminal is as it was before.
        pane.until(lambda text: text.startswith("left: 0") and "STATE" not in text, "it is left")


class Job(unittest.TestCase):
    """`top` as a job of a shell: the terminal is the shell's whenever it is not top's."""

    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.close)
        self.pane = Pane(self.server, "env", "PS1=shell> ", "bash", "--norc", "-i")
        self.addCleanup(self.pane.close)
        self.server.ctl("new", "docs")
        where = ["--address", self.server.ready["address"], "--data-dir", self.server.data_dir]
        self.pane.shows("shell>")
        self.begin = " ".join(f"'{word}'" for word in [SESSIONCTL, *where, "top"])
        self.enter(self.begin)
        self.pane.shows("dormant", "docs")

    def enter(self, line: str) -> None:
        self.pane.types(line)
        self.pane.press("Enter")

    def usable(self, word: str) -> None:
        """Waits until the shell reads lines and shows what is typed, and nothing of top is left."""
        self.enter(f"echo {word} | tr a-z A-Z")
        self.pane.shows(word.upper())
        self.pane.until(lambda text: f"echo {word}" in text and "STATE" not in text, "the shell's screen")

    def program(self) -> int:
        """The job's process: the child of the shell, which is the child of what the pane began with."""
        child = self.pane.tmux("list-panes", "-F", "#{pane_pid}").strip()
        for _ in range(2):
            child = run("pgrep", "-P", child).stdout.strip()
        return int(child)

    def test_it_stops_and_goes_on_as_any_job_does(self):
        pane = self.pane
        pane.press("C-z")
        pane.shows("Stopped")
        self.usable("away")
        self.server.ctl("rename", "docs", "guide")
        self.enter("fg")
        pane.shows("dormant", "guide")
        # Where no program is asked before, it has the terminal anew all the same.
        os.kill(self.program(), signal.SIGSTOP)
        pane.shows("Stopped")
        self.enter("fg")
        pane.until(lambda text: "Stopped" not in text and "guide" in text, "it is drawn anew")
        pane.press("?")
        pane.shows("any key closes this")
        pane.press("q")
        pane.until(lambda text: "any key closes this" not in text, "its keys are heard")
        pane.press("q")
        self.usable("left")

    def test_a_program_that_is_ended_leaves_the_terminal_as_it_was(self):
        os.kill(self.program(), signal.SIGTERM)
        self.pane.shows("interrupted")
        self.usable("ended")


if __name__ == "__main__":
    unittest.main()
