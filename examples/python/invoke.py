#!/usr/bin/env python3
"""Starts a run and prints the answer as it comes: invoke.py SESSION PROMPT"""

import sys
import uuid

import grpc

from connection import connect, pause_or_give_up
from sessionplane.v1 import invoke_pb2, invoke_pb2_grpc, session_control_pb2, session_control_pb2_grpc, session_pb2


class Answer:
    """Prints text once, also when a rejoined run tells it again from the start."""

    def __init__(self) -> None:
        self.shown: dict[str, int] = {}  # characters of each message that are on the screen
        self.arrived: dict[str, int] = {}  # characters of each message that this stream has told

    def begins(self) -> None:
        self.arrived = {}

    def text(self, message: str, piece: str) -> None:
        start = self.arrived.get(message, 0)
        self.arrived[message] = start + len(piece)
        new = piece[max(0, self.shown.get(message, 0) - start) :]
        self.shown[message] = max(self.shown.get(message, 0), self.arrived[message])
        print(new, end="", flush=True)


def follow(events, answer: Answer):
    """Reads one stream to its terminal, which it returns."""
    for response in events:
        event = response.event
        match event.WhichOneof("event"):
            case "accepted":
                answer.begins()
                again = ", rejoined" if event.accepted.joined else ""
                print(f"[run {event.accepted.run_id}{again}]", file=sys.stderr)
            case "resumed":  # part of it is no longer retained
                print(f"[{event.resumed.skipped} events were missed]", file=sys.stderr)
            case "text":
                answer.text(event.text.message_id, event.text.text)
            case "tool_started":
                print(f"[tool {event.tool_started.name} {event.tool_started.input_json}]", file=sys.stderr)
            case "interaction_requested":
                print("[it asks: answer with `sessionctl answer`]", file=sys.stderr)
            case "completed" | "failed":
                return event
    raise ConnectionError("the stream ended without a terminal")


def print_what_was_missed(control, request, run_id: str, answer: Answer, metadata) -> None:
    """A run that settled while its caller was away is told by its record; what it said is in its entries."""
    since = ""
    while True:
        page = session_control_pb2.ListEntriesRequest(session=request.session, since=since)
        page = control.ListEntries(page, metadata=metadata)
        for entry in page.entries:
            if entry.run_id == run_id and entry.HasField("assistant"):
                answer.begins()
                answer.text(entry.assistant.message_id, entry.assistant.text)
        since = page.next_since
        if not page.has_more:
            return


def main(session: str, prompt: str) -> int:
    channel, metadata = connect()
    stub = invoke_pb2_grpc.InvokeStub(channel)
    request = invoke_pb2.InvokeRequest(
        session=session_pb2.SessionRef(name=session),
        prompt=invoke_pb2.Prompt(text=prompt),
        # However often this request is sent, it starts one run.
        request_id=str(uuid.uuid4()),
    )
    answer, attempt = Answer(), 0
    while True:
        try:
            end = follow(stub.Invoke(request, metadata=metadata), answer)
            run = end.completed.run if end.HasField("completed") else end.failed.run
            if attempt > 0:
                control = session_control_pb2_grpc.SessionControlStub(channel)
                print_what_was_missed(control, request, run.run_id, answer, metadata)
            break
        except (grpc.RpcError, ConnectionError) as error:
            pause_or_give_up(error, attempt)
            attempt += 1
    print()
    if end.WhichOneof("event") == "failed":
        print(f"failed: {end.failed.code}: {end.failed.details}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
