#!/usr/bin/env python3
"""Checks docs/audit-vectors.json with an implementation of its own: SHA-256 and RFC 8032, nothing of ours.

  tests/audit_vectors.py            exit status 1 if a vector is not what docs/audit.md says
  tests/audit_vectors.py --write    work out encodings, hashes and the signature anew from the fields

What must never enter: anything from the Rust code.
"""

import hashlib
import json
import pathlib
import sys

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "audit-vectors.json"

TEXT, NUMBER, BYTES, ULID = "text", "number", "bytes", "ulid"
FIELDS = [
    (1, "seq", NUMBER), (2, "time_ms", NUMBER), (3, "tenant", TEXT), (4, "principal", TEXT),
    (5, "credential", TEXT), (6, "via", TEXT), (7, "action", TEXT), (8, "session_id", ULID),
    (9, "decision", TEXT), (10, "policies", TEXT), (11, "request_digest", BYTES), (12, "bytes", NUMBER),
    (13, "request_id", TEXT), (14, "trace_id", TEXT), (15, "outcome", TEXT), (16, "run_id", ULID),
    (17, "entries", NUMBER), (18, "message_id", ULID), (19, "series", TEXT), (20, "ordinal", NUMBER),
    (21, "sandbox", TEXT), (22, "peer", TEXT), (23, "reason", TEXT), (24, "count", NUMBER),
    (25, "last_time_ms", NUMBER),
]


def ulid(text):
    number = 0
    for digit in text:
        number = number * 32 + "0123456789ABCDEFGHJKMNPQRSTVWXYZ".index(digit)
    return number.to_bytes(16, "big")


def value(kind, it):
    return {
        TEXT: lambda: it.encode(),
        NUMBER: lambda: it.to_bytes(8, "big"),
        BYTES: lambda: bytes.fromhex(it),
        ULID: lambda: ulid(it),
    }[kind]()


def fields(table, record):
    out = b""
    for tag, name, kind in table:
        found = record.get(name)
        for it in found if isinstance(found, list) else [] if found is None else [found]:
            content = value(kind, it)
            out += bytes([tag]) + len(content).to_bytes(4, "big") + content
    return out


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


# RFC 8032, as slow as it is short.
P = 2**255 - 19
Q = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)


def add(a, b):
    p, q = (a[1] - a[0]) * (b[1] - b[0]), (a[1] + a[0]) * (b[1] + b[0])
    r, s = 2 * a[3] * b[3] * D, 2 * a[2] * b[2]
    e, f, g, h = q - p, s - r, s + r, q + p
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def times(n, a):
    out = (0, 1, 1, 0)
    while n:
        if n & 1:
            out = add(out, a)
        a, n = add(a, a), n >> 1
    return out


def root(y, sign):
    xx = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(xx, (P + 3) // 8, P)
    if (x * x - xx) % P:
        x = x * ROOT % P
    if (x * x - xx) % P:
        raise ValueError("no point")
    return P - x if x & 1 != sign else x


def point(raw):
    y = int.from_bytes(raw, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    x = root(y, sign)
    return (x, y, 1, x * y % P)


def packed(a):
    z = pow(a[2], P - 2, P)
    return ((a[1] * z % P) | ((a[0] * z % P & 1) << 255)).to_bytes(32, "little")


BASE_Y = 4 * pow(5, P - 2, P) % P
BASE_X = root(BASE_Y, 0)
BASE = (BASE_X, BASE_Y, 1, BASE_X * BASE_Y % P)


def number(*parts):
    return int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little") % Q


def key(seed):
    h = hashlib.sha512(seed).digest()
    a = int.from_bytes(h[:32], "little") & ((1 << 254) - 8) | (1 << 254)
    return a, h[32:], packed(times(a, BASE))


def sign(seed, message):
    a, prefix, public = key(seed)
    r = number(prefix, message)
    big_r = packed(times(r, BASE))
    s = (r + number(big_r, public, message) * a) % Q
    return big_r + s.to_bytes(32, "little")


def verifies(public, message, signature):
    big_r, s = point(signature[:32]), int.from_bytes(signature[32:], "little")
    left = times(s, BASE)
    right = add(big_r, times(number(signature[:32], public, message), point(public)))
    return packed(left) == packed(right)


CHECKPOINT = [(1, "tenant", TEXT), (2, "seq", NUMBER), (3, "hash", BYTES), (4, "time_ms", NUMBER), (5, "key_id", TEXT)]


def worked_out(page):
    """What the page is to say, from its fields and its seed alone."""
    tenant = page["records"][0]["record"]["tenant"]
    store = bytes.fromhex(page["store_id"])
    previous = sha256(b"sessionplane.audit.v1.genesis\0", store, tenant.encode())
    out = {"store_id": page["store_id"], "genesis": previous.hex(), "records": []}
    for it in page["records"]:
        encoding = fields(FIELDS, it["record"])
        digest = sha256(b"sessionplane.audit.v1\0", previous, encoding)
        out["records"].append({
            "record": it["record"], "encoding": encoding.hex(), "prev_hash": previous.hex(), "hash": digest.hex(),
        })
        previous = digest
    seed = bytes.fromhex(page["checkpoint"]["seed"])
    public = key(seed)[2]
    said = {
        "tenant": tenant, "seq": len(page["records"]), "hash": previous.hex(),
        "time_ms": page["checkpoint"]["time_ms"], "key_id": sha256(public)[:8].hex(),
    }
    signed = b"sessionplane.checkpoint.v1\0" + fields(CHECKPOINT, said)
    out["checkpoint"] = {
        "seed": seed.hex(), "public_key": public.hex(), **said, "signed": signed.hex(),
        "signature": sign(seed, signed).hex(),
    }
    return out


def main():
    page = json.loads(PAGE.read_text())
    expected = worked_out(page)
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(json.dumps(expected, indent=2) + "\n")
        return 0
    wrong = [i + 1 for i, (a, b) in enumerate(zip(page["records"], expected["records"])) if a != b]
    for seq in wrong:
        print(f"record {seq} is not what its fields say", file=sys.stderr)
    said = expected["checkpoint"]
    signature, public = bytes.fromhex(page["checkpoint"]["signature"]), bytes.fromhex(said["public_key"])
    if not verifies(public, bytes.fromhex(said["signed"]), signature):
        print("the checkpoint's signature is not of its key", file=sys.stderr)
        return 1
    if page != expected:
        print("the page is not what is worked out of it", file=sys.stderr)
        return 1
    print(f"{len(page['records'])} records and 1 checkpoint are as documented")
    return 0


if __name__ == "__main__":
    sys.exit(main())
