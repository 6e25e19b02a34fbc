"""grpcurl and ghz, as README shows them: no stub, no proto file, only reflection."""

import json
import re
import unittest

from server import ROOT, TOOLS, Server, run

README = (ROOT / "README.md").read_text()


def documented() -> list[str]:
    """The commands of README that begin with grpcurl or ghz, each on one line."""
    text = README.replace("\\\n", " ")
    return [" ".join(line.split()) for line in re.findall(r"^(?:grpcurl|ghz) .*$", text, re.MULTILINE)]


class Tools(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.close)
        cls.server.ctl("invoke", "--new", "first", "say-words 3")

    def grpcurl(self, *words: str, check: bool = True):
        token = f"authorization: Bearer {self.server.token}"
        return run(TOOLS / "grpcurl", "-plaintext", "-max-time", "60", "-H", token, *words, check=check)

    def call(self, method: str, check: bool = True, **request):
        words = ["-d", json.dumps(request), self.server.address, f"sessionplane.v1.{method}"]
        answer = self.grpcurl(*words, check=check)
        return objects(answer.stdout) if check else answer

    def ghz(self, method: str, *words: str, request: dict) -> dict:
        """Runs a load, and returns ghz's report of it."""
        metadata = json.dumps({"authorization": f"Bearer {self.server.token}"})
        report = run(
            TOOLS / "ghz", "--insecure", "--call", f"sessionplane.v1.{method}", "-O", "json",
            "-m", metadata, "--reflect-metadata", metadata, "-d", json.dumps(request),
            "--timeout", "60s", *words, self.server.address,
        )  # fmt: skip
        report = json.loads(report.stdout)
        self.assertEqual(report["statusCodeDistribution"], {"OK": report["count"]})
        self.assertEqual(report.get("errorDistribution", {}), {})
        return report

    def test_c62_grpcurl_lists_and_describes_every_service_by_reflection(self):
        listed = self.grpcurl(self.server.address, "list").stdout.split()
        for service in ["Invoke", "SessionControl"]:
            name = f"sessionplane.v1.{service}"
            self.assertIn(name, listed)
            methods = self.grpcurl(self.server.address, "list", name).stdout.split()
            self.assertTrue(methods)
            for method in methods:
                self.assertIn("rpc", self.grpcurl(self.server.address, "describe", method).stdout)
        for other in ["grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"]:
            self.assertIn(other, listed)
        # A tool that knows the older reflection only finds the same.
        self.assertIn("grpc.reflection.v1alpha.ServerReflection", listed)

    def test_c62_both_versions_of_reflection_answer_a_tool_that_asks_for_them(self):
        for version in ["v1", "v1alpha"]:
            answer = self.grpcurl(
                "-d", '{"list_services": ""}', self.server.address,
                f"grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
            )  # fmt: skip
            services = objects(answer.stdout)[0]["listServicesResponse"]["service"]
            self.assertIn({"name": "sessionplane.v1.Invoke"}, services)

    def test_grpcurl_invokes_and_streams_and_reads(self):
        session = {"name": "by-grpcurl"}
        events = self.call("Invoke/Invoke", session=session, prompt={"text": "say-words 3"}, requestId="grpcurl-1")
        self.assertIn("accepted", events[0]["event"])
        self.assertEqual("".join(e["event"].get("text", {}).get("text", "") for e in events).strip(), "w1 w2 w3")
        self.assertIn("completed", events[-1]["event"])
        (state,) = self.call("SessionControl/GetState", session=session)
        self.assertEqual(state["state"]["sessionId"], events[0]["event"]["accepted"]["sessionId"])
        rejected = self.call("SessionControl/Dispatch", session=session, steer={"text": "more"})
        self.assertEqual(rejected[0]["rejected"]["code"], "REJECTION_CODE_NO_ACTIVE_RUN")

    def test_grpcurl_prints_the_details_of_a_refusal(self):
        refused = self.call("SessionControl/GetState", check=False, session={"name": "nope"})
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("google.rpc.ErrorInfo", refused.stderr)
        self.assertIn("NO_SUCH_SESSION", refused.stderr)

    def test_grpcurl_asks_for_health_without_a_token(self):
        # Only the question what there is to ask carries it.
        token = f"authorization: Bearer {self.server.token}"
        words = [TOOLS / "grpcurl", "-plaintext", "-reflect-header", token, self.server.address]
        words.append("grpc.health.v1.Health/Check")
        self.assertEqual(json.loads(run(*words).stdout), {"status": "SERVING"})

    def test_ghz_reads_states_without_an_error(self):
        report = self.ghz(
            "SessionControl/GetState", "-n", "500", "-c", "10", "--connections", "2",
            request={"session": {"name": "first"}},
        )  # fmt: skip
        self.assertEqual(report["count"], 500)

    def test_ghz_invokes_and_every_run_completes(self):
        # A session each: one that runs is busy.
        request = {
            "session": {"name": "load-{{.RequestNumber}}"},
            "prompt": {"text": "say-words 3"},
            "requestId": "{{newUUID}}",
        }
        report = self.ghz("Invoke/Invoke", "-n", "100", "-c", "5", "--connections", "2", request=request)
        self.assertEqual(report["count"], 100)
        for number in (0, 99):
            (state,) = self.call("SessionControl/GetState", session={"name": f"load-{number}"})
            self.assertEqual(state["state"]["lastRun"]["outcome"], "RUN_OUTCOME_COMPLETED", state)

    def test_ghz_steers_a_run_and_every_command_is_accepted_once(self):
        self.call("Invoke/Invoke", session={"name": "steered"}, prompt={"text": "say-words 1"})
        self.server.ctl("invoke", "steered", "--timeout", "1s", "wait-steer\n" * 200, check=False)
        request = {"session": {"name": "steered"}, "requestId": "{{newUUID}}", "steer": {"text": "say \"s\""}}
        report = self.ghz("SessionControl/Dispatch", "-n", "100", "-c", "5", request=request)
        self.assertEqual(report["count"], 100)
        self.server.ctl("abort", "steered")
        entries = self.server.ctl("entries", "steered", "--json").stdout
        self.assertGreater(entries.count('say \\\\\\"s') + entries.count('say \\"s'), 0)


class Readme(unittest.TestCase):
    def test_every_line_of_readme_with_grpcurl_or_ghz_runs_as_it_stands(self):
        lines = documented()
        self.assertGreaterEqual(len([line for line in lines if line.startswith("grpcurl ")]), 4, lines)
        self.assertGreaterEqual(len([line for line in lines if line.startswith("ghz ")]), 1, lines)
        with Server() as server:
            server.ctl("invoke", "--new", "first", "say-words 3")
            for line in lines:
                self.assertIn("127.0.0.1:50051", line)
                line = line.replace("127.0.0.1:50051", server.address)
                said = run("sh", "-c", f'PATH={TOOLS}:$PATH; TOKEN="{server.token}"; {line}').stdout
                # ghz counts errors and exits with 0 all the same.
                self.assertNotIn("Error distribution", said)


def objects(text: str) -> list[dict]:
    """The JSON objects that stand one after the other in a text."""
    decoder, found = json.JSONDecoder(), []
    text = text.strip()
    while text:
        value, end = decoder.raw_decode(text)
        found.append(value)
        text = text[end:].strip()
    return found


if __name__ == "__main__":
    unittest.main()
