"""The examples of plain generated stubs: they invoke, stream, observe, and come back after a lost connection."""

import os
import queue
import re
import socket
import subprocess
import tempfile
import threading
import unittest
from concurrent import futures
from pathlib import Path

import grpc

from server import DEADLINE, ROOT, VENV, Server, clean_environment, run

EXAMPLES = ROOT / "examples"
WORDS = " ".join(f"w{n}" for n in range(1, 41))


class Cut:
    """A way to a server that is cut when told, once; who connects again gets through."""

    def __init__(self, address: str):
        host, port = address.rsplit(":", 1)
        self.server = (host, int(port))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.open: list[socket.socket] = []
        self.through = threading.Event()
        self.through.set()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            if not self.through.wait(DEADLINE):
                near.close()
                continue
            far = socket.create_connection(self.server)
            self.open += [near, far]
            for source, sink in [(near, far), (far, near)]:
                threading.Thread(target=self.forward, args=(source, sink), daemon=True).start()

    @staticmethod
    def forward(source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def cut(self) -> None:
        for end in self.open:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()
        self.open.clear()

    def close(self) -> None:
        self.cut()
        self.listener.close()


class Running:
    """An example that runs; its lines are read as they come."""

    def __init__(self, words: list[str], environment: dict[str, str]):
        self.process = subprocess.Popen(
            words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.out, self.err = bytearray(), bytearray()
        self.news: queue.Queue[None] = queue.Queue()
        self.readers = [
            threading.Thread(target=self.read, args=(stream, kept), daemon=True)
            for stream, kept in [(self.process.stdout, self.out), (self.process.stderr, self.err)]
        ]
        for reader in self.readers:
            reader.start()

    def read(self, stream, kept: bytearray) -> None:
        while data := stream.read1(4096):
            kept += data
            self.news.put(None)

    def says(self, text: str) -> None:
        """Waits until it has said so."""
        while text.encode() not in self.out + self.err:
            self.news.get(timeout=DEADLINE)

    def ended(self) -> tuple[int, str, str]:
        code = self.process.wait(DEADLINE)
        for reader in self.readers:
            reader.join(DEADLINE)
        self.process.stdout.close()
        self.process.stderr.close()
        return code, self.out.decode(), self.err.decode()


class EndsEarly(grpc.GenericRpcHandler):
    """Ends the first stream as if all were well, and refuses the second."""

    def __init__(self):
        self.calls = 0

    def service(self, _call):
        return grpc.unary_stream_rpc_method_handler(self.answer)

    def answer(self, _request, context):
        self.calls += 1
        if self.calls > 1:
            context.abort(grpc.StatusCode.PERMISSION_DENIED, "enough")
        yield from ()


class Language:
    """What each language's examples must do; the classes below say how they are run."""

    def environment(self, server: Server, address: str | None = None, **more: str) -> dict[str, str]:
        token = str(server.data_dir / "owner.token")
        more = {"SESSIONPLANE_TOKEN_FILE": token} | more
        return clean_environment(SESSIONPLANE_ADDRESS=address or server.address, **more)

    def invoke(self, server: Server, prompt: str, address: str | None = None, **more: str) -> Running:
        return Running([*self.program("invoke"), "first", prompt], self.environment(server, address, **more))

    def test_an_answer_is_printed_as_it_comes(self):
        for listen in ["127.0.0.1:0", "unix:s.sock"]:
            with Server(listen=listen) as server:
                code, out, err = self.invoke(server, "say-words 40").ended()
                self.assertEqual((code, out.strip()), (0, WORDS), err)
                self.assertRegex(err, r"\[run \w{26}")

    def test_c12_after_a_lost_connection_the_run_is_rejoined_and_nothing_is_printed_twice(self):
        with Server() as server:
            way = Cut(server.address)
            self.addCleanup(way.close)
            prompt = "say-words 20\nwait-steer\nmessage\nsay-words 20"
            running = self.invoke(server, prompt, address=way.address)
            running.says("w20")
            way.cut()
            running.says("asking again")
            running.says("rejoined")
            server.ctl("steer", "first", "say \"and on \"")
            code, out, err = running.ended()
            words = " ".join(f"w{n}" for n in range(1, 21))
            self.assertEqual(code, 0, err)
            self.assertEqual(out.count("w1 "), 2, "the second message's words are its own")
            self.assertEqual("".join(out.split()), (words + "and on" + words).replace(" ", ""), err)
            runs = server.ctl("runs", "first", "--json").stdout.splitlines()
            self.assertEqual(len(runs), 1, "one run")

    def test_c12_an_answer_that_was_given_while_its_caller_was_away_is_printed_whole(self):
        with Server() as server:
            way = Cut(server.address)
            self.addCleanup(way.close)
            prompt = "say-words 20\nwait-steer\nmessage\nsay-words 20"
            running = self.invoke(server, prompt, address=way.address)
            running.says("w20")
            way.through.clear()
            way.cut()
            running.says("asking again")
            server.ctl("steer", "first", 'say "and on "')
            self.assertEqual(server.ctl("wait", "first").returncode, 0)
            way.through.set()
            code, out, err = running.ended()
            words = "".join(f"w{n}" for n in range(1, 21))
            self.assertEqual((code, "".join(out.split())), (0, f"{words}andon{words}"), err)

    def test_c12_c36_a_run_that_a_crash_cut_is_told_as_failed(self):
        with Server() as server:
            running = self.invoke(server, "say-words 20\nhang")
            running.says("w20")
            server.kill()
            running.says("asking again")
            server.start()
            code, _out, err = running.ended()
            self.assertEqual(code, 1)
            self.assertIn("failed: interrupted", err)

    def test_a_failed_run_and_a_refusal_are_told_and_not_repeated(self):
        with Server() as server:
            code, _out, err = self.invoke(server, 'fail some_code "some details"').ended()
            self.assertEqual(code, 1)
            self.assertIn("failed: some_code: some details", err)
            code, _out, err = self.invoke(server, "say-words 1", SESSIONPLANE_TOKEN="sp_wrong").ended()
            self.assertEqual(code, 1)
            self.assertIn("nauthenticated", err.replace("UNAUTHENTICATED", "Unauthenticated"))
            self.assertNotIn("asking again", err)
            self.assertNotIn("Traceback", err)

    def test_a_stream_that_ends_before_its_run_is_asked_for_again(self):
        early = EndsEarly()
        server = grpc.server(futures.ThreadPoolExecutor(2), handlers=[early])
        address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        self.addCleanup(lambda: server.stop(None).wait())
        environment = clean_environment(SESSIONPLANE_ADDRESS=address, SESSIONPLANE_TOKEN="sp_any")
        code, _out, err = Running([*self.program("invoke"), "first", "say-words 1"], environment).ended()
        self.assertEqual((code, early.calls), (1, 2), err)
        self.assertIn("asking again", err)
        self.assertNotIn("Traceback", err)

    def test_an_observer_sees_a_run_from_its_begin_to_its_end_and_comes_back(self):
        with Server() as server:
            self.assertEqual(self.invoke(server, "say-words 3").ended()[0], 0)
            way = Cut(server.address)
            self.addCleanup(way.close)
            words = [*self.program("observe"), "first", "2"]
            observer = Running(words, self.environment(server, way.address))
            observer.says("entry ")
            self.assertEqual(self.invoke(server, "say-words 3").ended()[0], 0)
            observer.says("event run_settled")
            way.cut()
            observer.says("asking again")
            self.assertEqual(self.invoke(server, "say-words 3").ended()[0], 0)
            code, out, err = observer.ended()
            self.assertEqual(code, 0, err)
            self.assertEqual(len(re.findall("^event run_started$", out, re.M)), 2)
            self.assertEqual(len(re.findall("^event run_settled$", out, re.M)), 2)
            entries = len(server.ctl("entries", "first", "--json").stdout.splitlines())
            told = len(re.findall("^(?:entry |event entry_appended)", out, re.M))
            self.assertEqual(told, entries, "each entry once")
            # An entry is told by its id and what it says, in one line that has a bound, past or live.
            for begin in ["entry", "event entry_appended"]:
                self.assertRegex(out, rf"(?m)^{begin} \w{{26}}-\d+ user say-words 3$")
                self.assertRegex(out, rf"(?m)^{begin} \w{{26}}-\d+ assistant w1 w2 w3$")

    def test_an_entry_is_told_in_one_line_of_bounded_length_that_holds_no_control(self):
        with Server() as server:
            said = r'say "one\ntwo\u001b[31m' + "x" * 200 + '"'
            self.assertEqual(self.invoke(server, said).ended()[0], 0)
            observer = Running([*self.program("observe"), "first", "1"], self.environment(server))
            observer.says(" assistant one two")
            observer.process.terminate()
            _code, out, err = observer.ended()
            (line,) = [line for line in out.splitlines() if " assistant " in line]
            self.assertNotIn("\x1b", line)
            self.assertRegex(line, r"^entry \w{26}-\d+ assistant one two \[31mx+\.\.\.$", err)
            self.assertLess(len(line), 200)

    def test_an_observer_tells_what_it_is_refused_in_a_line(self):
        with Server() as server:
            self.assertEqual(self.invoke(server, "say-words 1").ended()[0], 0)
            for session, more in [
                ("nosuch", {}),
                ("first", {"SESSIONPLANE_TOKEN": "sp_wrong"}),
                ("first", {"SESSIONPLANE_TOKEN_FILE": "/nowhere"}),
            ]:
                observer = Running([*self.program("observe"), session], self.environment(server, **more))
                code, out, err = observer.ended()
                self.assertEqual((code, out, len(err.splitlines())), (1, "", 1), err)


class Python(Language, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        environment = clean_environment(PYTHON=str(VENV / "python"))
        run(EXAMPLES / "python" / "generate.sh", env=environment)

    def program(self, name: str) -> list[str]:
        return [str(VENV / "python"), str(EXAMPLES / "python" / f"{name}.py")]


class Go(Language, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        run(EXAMPLES / "go" / "generate.sh")
        environment = clean_environment(GOFLAGS=os.environ.get("GOFLAGS", "") + " -mod=readonly")
        here = EXAMPLES / "go"
        run("go", "vet", "./connection", "./invoke", "./observe", cwd=here, env=environment)
        run("go", "build", "-o", cls.folder.name, "./invoke", "./observe", cwd=here, env=environment)

    def program(self, name: str) -> list[str]:
        return [str(Path(self.folder.name) / name)]


if __name__ == "__main__":
    unittest.main()
