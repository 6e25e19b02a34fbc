"""`sessiond health`, the second listener, and what a service manager is told."""

import socket
import subprocess
import threading
import unittest

from server import SESSIOND, Server, clean_environment, run


def ask(*words: object, **environment: str):
    return run(SESSIOND, "health", *words, check=False, env=clean_environment(**environment))


class Health(unittest.TestCase):
    def test_c62_health_is_yes_while_a_server_takes_calls_and_no_after(self):
        for listen in ["127.0.0.1:0", "unix:s.sock"]:
            with Server(listen=listen) as server:
                answer = ask("--address", server.address)
                self.assertEqual((answer.returncode, answer.stdout.strip()), (0, f"{server.address} is SERVING"))
                for service in ["sessionplane.v1.Invoke", "sessionplane.v1.SessionControl", "liveness"]:
                    self.assertEqual(ask("--address", server.address, "--service", service).returncode, 0, service)
                unknown = ask("--address", server.address, "--service", "nope")
                self.assertEqual(unknown.returncode, 1)
                self.assertIn("service not registered", unknown.stderr)
                self.assertEqual(server.stop(), 0)
                gone = ask("--address", server.address)
                self.assertEqual(gone.returncode, 1)
                self.assertIn("cannot be reached", gone.stderr)

    def test_health_looks_where_a_server_with_the_same_settings_is(self):
        with Server() as server:
            server.stop()
            server.start("--health-listen", "0.0.0.0:0")
            probes = server.ready["health_address"].split(":")[-1]
            self.assertEqual(ask(SESSIONPLANE_LISTEN=server.address).returncode, 0)
            # The listener of its own comes first, and `all addresses` is asked on loopback.
            both = ask(SESSIONPLANE_LISTEN="127.0.0.1:1", SESSIONPLANE_HEALTH_LISTEN=f"0.0.0.0:{probes}")
            self.assertEqual(both.stdout.strip(), f"127.0.0.1:{probes} is SERVING")
            config = server.folder / "health.toml"
            config.write_text(f'health_listen = "127.0.0.1:{probes}"\n')
            self.assertEqual(ask(SESSIONPLANE_CONFIG=str(config)).returncode, 0)

    def test_health_of_who_never_answers_is_no_in_bounded_time(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            accepted: list = []
            thread = threading.Thread(target=lambda: accepted.append(silent.accept()), daemon=True)
            thread.start()
            answer = ask("--address", f"127.0.0.1:{silent.getsockname()[1]}", "--timeout", "1s")
            self.assertEqual(answer.returncode, 1)
            self.assertIn("did not answer within 1s", answer.stderr)
            accepted[0][0].close()

    def test_what_makes_no_sense_is_told(self):
        self.assertIn("is not an address", ask("--address", "nowhere").stderr)
        self.assertEqual(ask("--timeout", "0").returncode, 2)


class Manager(unittest.TestCase):
    def test_a_service_manager_is_told_when_it_takes_calls_and_when_it_stops(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind("\0sessionplane-outside-manager")
            manager.settimeout(60)
            environment = clean_environment(NOTIFY_SOCKET="@sessionplane-outside-manager")
            with Server(env=environment) as server:
                self.assertEqual(manager.recv(64), b"READY=1")
                server.process.send_signal(subprocess.signal.SIGTERM)
                self.assertEqual(manager.recv(64), b"STOPPING=1")
                self.assertEqual(server.process.wait(60), 0)


if __name__ == "__main__":
    unittest.main()
