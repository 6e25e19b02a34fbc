#!/usr/bin/env python3
"""Prints what happens in a session, from its first entry on: observe.py SESSION [RUNS]; it ends after so many runs"""

import sys

import grpc

from connection import connect, pause_or_give_up
from sessionplane.v1 import position_pb2, session_control_pb2, session_control_pb2_grpc, session_pb2


MOST_CHARACTERS = 100


def told(entry) -> str:
    """An entry in one line: its id, what it is, and the beginning of what it says."""
    kind = entry.WhichOneof("body") or "unknown"  # newer than these stubs
    match kind:
        case "user" | "assistant" | "notice":
            text = getattr(entry, kind).text
        case "tool":
            text = f"{entry.tool.name} {entry.tool.input_json}"
        case "settings":
            text = f"{entry.settings.model} {entry.settings.thinking_level}"
        case "compaction":
            text = entry.compaction.summary
        case _:
            text = ""
    # What others wrote may hold codes that a terminal obeys.
    text = "".join(character if character.isprintable() else " " for character in text).strip()
    cut = "..." if len(text) > MOST_CHARACTERS else ""
    return f"{entry.id} {kind} {text[:MOST_CHARACTERS]}{cut}".rstrip()


class Observer:
    """What has to be remembered to come back without a hole."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.position = None  # of the last live event
        self.entry = ""  # the last durable entry

    def request(self):
        return session_control_pb2.EventsRequest(
            session=session_pb2.SessionRef(name=self.session),
            resume=self.position,
            # Used where the server no longer has the events after the position.
            entries_since=self.entry,
        )

    def take(self, response) -> bool:
        """Prints one item; true if it was the end of a run."""
        match response.WhichOneof("item"):
            case "subscribed" if response.subscribed.gap:
                print("[some live events are gone; the entries follow]", flush=True)
            case "entries":
                for entry in response.entries.entries:
                    self.entry = entry.id
                    print(f"entry {told(entry)}", flush=True)
            case "snapshot":
                self.position = response.snapshot.position
            case "heartbeat":
                self.position = response.heartbeat.position
            case "event":
                self.position = position_pb2.Position(epoch=response.event.epoch, seq=response.event.seq)
                event = response.event.event
                more = ""
                if event.WhichOneof("payload") == "entry_appended":
                    self.entry = event.entry_appended.entry.id
                    more = f" {told(event.entry_appended.entry)}"
                print(f"event {event.type}{more}", flush=True)
                return event.type == "run_settled"
        return False


def main(session: str, runs: int) -> None:
    channel, metadata = connect()
    stub = session_control_pb2_grpc.SessionControlStub(channel)
    observer, attempt = Observer(session), 0
    while runs > 0:
        try:
            # It has no end of its own: heartbeats come while nothing happens.
            for response in stub.Events(observer.request(), metadata=metadata):
                attempt = 0
                runs -= observer.take(response)
                if runs <= 0:
                    return
        except grpc.RpcError as error:
            pause_or_give_up(error, attempt)
            attempt += 1


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or not all(text.isdecimal() for text in sys.argv[2:]):
        sys.exit(__doc__)
    try:
        main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) == 3 else sys.maxsize)
    except KeyboardInterrupt:
        pass
