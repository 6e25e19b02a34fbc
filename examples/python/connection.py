"""Where the server is, who calls, and when a call may be repeated."""

import os
import random
import sys
import time
from pathlib import Path

import grpc

# The stubs import each other as `sessionplane.v1`.
sys.path.insert(0, str(Path(__file__).parent / "gen"))

# The connection broke, or a proxy cut it. What the call started goes on: ask again, with the same request_id.
# A refusal has another code, and asking again would not help.
LOST = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL, grpc.StatusCode.CANCELLED}
MOST_ATTEMPTS = 8


def address_of_server() -> str:
    return os.environ.get("SESSIONPLANE_ADDRESS", "127.0.0.1:50051").removeprefix("http://")


def connect() -> tuple[grpc.Channel, list[tuple[str, str]]]:
    """A channel to SESSIONPLANE_ADDRESS (HOST:PORT or unix:/PATH), and the metadata that says who calls."""
    address = address_of_server()
    token = os.environ.get("SESSIONPLANE_TOKEN")
    if token is None:
        token_file = Path("~/.local/state/sessionplane/owner.token").expanduser()
        try:
            token = Path(os.environ.get("SESSIONPLANE_TOKEN_FILE", token_file)).read_text()
        except OSError as error:
            sys.exit(f"no token: {error}; SESSIONPLANE_TOKEN_FILE names its file")
    # For a unix socket grpc makes its path the call's authority, which HTTP/2 servers of other families refuse.
    options = [("grpc.default_authority", "localhost")] if address.startswith("unix:") else []
    # Plain text: for this machine only. Elsewhere use grpc.secure_channel.
    return grpc.insecure_channel(address, options), [("authorization", f"Bearer {token.strip()}")]


def pause_or_give_up(error: grpc.RpcError | ConnectionError, attempt: int) -> None:
    """Waits a little longer each time before a call is repeated; ends with what will not get better."""
    if isinstance(error, ConnectionError):  # a stream that ended before its run did
        lost, why = True, str(error)
    elif error.code() == grpc.StatusCode.UNAVAILABLE and "failed to connect" in error.details():
        lost, why = True, f"no server answers at {address_of_server()}"
    else:
        lost, why = error.code() in LOST, f"{error.code().name}: {error.details()}"
    if not lost or attempt >= MOST_ATTEMPTS:
        sys.exit(why)
    print(f"[lost the server: {why}; asking again]", file=sys.stderr)
    time.sleep(min(5.0, 0.2 * 2**attempt) * random.uniform(0.5, 1.0))
