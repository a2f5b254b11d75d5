"""Both ends of the wire against a peer that sends anything at all.

The host gets replies from a guest that may have been overcome, and the guest requests that were
cut short or mixed up. Whatever comes, each answers, or says that the other is broken, in time.
"""

from __future__ import annotations

import datetime
import json
import random
import resource
import socket
import struct
import threading
import time
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.sandbox import Limits, RunStatus
from assay.sandbox.backends import slot as slot_module
from assay.sandbox.backends.bwrap import BwrapBackend
from assay.sandbox.backends.slot import Origin, Reply, Request, Slot, SlotBroken
from assay.sandbox.grading.checks import calls_check
from assay.sandbox.grading.outcome import run_result
from assay.sandbox.guest.channel import Peer as Channel
from assay.sandbox.guest.channel import PeerGone, Remote

pytestmark = pytest.mark.slow

LIMITS = Limits(cpu_s=0.1, wall_s=0.015, output_bytes=1000)
GREETING = {"ready": 1, "python": "3.11.7", "switches": True}
FACTS: dict[str, Any] = {
    "id": 1,
    "end": "exit",
    "exits": [0],
    "note": "",
    "wall_s": 0.01,
    "cpu_s": 0.01,
    "rss_kib": 9000,
    "oom": False,
    "orphans": 0,
    "clean": True,
    "sizes": [5, 0, 2],
    "cut": [False, False, False],
}
OUTPUTS = b"hello" + b"ok"
LONGEST_S = 5.0  # LIMITS' wall limit and the grace below, many times over


@pytest.fixture(autouse=True)
def _short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_module, "GRACE_S", 0.1)


def frame(value: object) -> bytes:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return struct.pack(">I", len(data)) + data


def docker_frame(data: bytes, channel: int = 1) -> bytes:
    return struct.pack(">BxxxI", channel, len(data)) + data


class Peer:
    """A fake guest on the other end of a socket pair: it greets, waits for a request, and acts."""

    def __init__(self, act: Callable[[socket.socket], None], *, multiplexed: bool = False) -> None:
        self.ours, self.theirs = socket.socketpair()
        self.multiplexed = multiplexed
        self._act = act
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        with self.theirs as stream:
            try:
                greeting = frame(GREETING)
                stream.sendall(docker_frame(greeting) if self.multiplexed else greeting)
                stream.settimeout(LONGEST_S)
                if stream.recv(1 << 16):
                    self._act(stream)
            except OSError:
                pass

    def ask(self, *, mode: Any = "program", hang_up: bool = True) -> Reply | SlotBroken:
        """What a slot makes of this guest; it must take no longer than LONGEST_S."""
        started = time.monotonic()
        slot = Slot(self.ours, Origin(), multiplexed=self.multiplexed, end=lambda: None)
        try:
            return slot.run(Request(mode, b"", b"", LIMITS))
        except SlotBroken as error:
            return error
        finally:
            slot.close()
            self._thread.join()
            assert time.monotonic() - started < LONGEST_S


def sends(*pieces: bytes) -> Callable[[socket.socket], None]:
    return lambda stream: [stream.sendall(piece) for piece in pieces] and None  # type: ignore[return-value, func-returns-value]  # a short loop


def is_well_formed(reply: Reply) -> bool:
    """A result and a status can be made of it."""
    result = run_result(reply, LIMITS)
    json.dumps(result.to_json(), allow_nan=False)
    return result.status in RunStatus and all(len(out) <= 1000 for out in reply.outputs)


def changed(**facts: Any) -> bytes:
    return frame({**FACTS, **facts}) + OUTPUTS


def test_the_reply_itself_is_fine() -> None:
    for multiplexed in (False, True):
        whole = frame(FACTS) + OUTPUTS
        reply = Peer(
            sends(docker_frame(whole) if multiplexed else whole), multiplexed=multiplexed
        ).ask()
        assert isinstance(reply, Reply)
        assert reply.outputs == (b"hello", b"", b"ok")


BROKEN = {
    "nothing": b"",
    "a length only": b"\0\0\0\x02",
    "a huge length": b"\xff\xff\xff\xff" + b"x" * 100,
    "no JSON": frame(b"}{"),
    "no object": frame([1]),
    "deep JSON": frame(b"[" * 500_000),
    "a long number": frame(b'{"id": ' + b"9" * 10_000 + b"}"),
    "not text": frame(b"\xff\xfe\xfd"),
    "another id": changed(id=2),
    "an id that is equal": changed(id=1.0000000000000002),
    "no facts": frame({"id": 1, "sizes": [0, 0, 0]}),
    "an end that is none": changed(end="passed"),
    "an end that is no text": changed(end=["exit"]),
    "no exit code": changed(exits=[]),
    "two exit codes": changed(exits=[0, 0]),
    "exit codes of a mapping": changed(exits={"0": 0}),
    "an exit code of text": changed(exits=["0"]),
    "an exit code that is true": changed(exits=[True]),
    "an exit code out of bounds": changed(exits=[1 << 70]),
    "time that is no number": frame(json.dumps({**FACTS, "wall_s": float("nan")}).encode()),
    "time without end": frame(json.dumps({**FACTS, "cpu_s": float("inf")}).encode()),
    "time before the start": changed(wall_s=-1.0),
    "time of text": changed(cpu_s="1"),
    "memory beyond all floats": changed(rss_kib=10**400),
    "orphans of text": changed(orphans="many"),
    "sizes of text": changed(sizes="abc"),
    "too few sizes": changed(sizes=[5, 2]),
    "a negative size": changed(sizes=[-1, 0, 0]),
    "a size over the limit": changed(sizes=[1001, 0, 0]),
    "flags of text": changed(cut="abc"),
    "too few flags": changed(cut=[False]),
    "a size that is true": changed(sizes=[True, 0, 0]),
    "less output than announced": frame({**FACTS, "sizes": [500, 0, 0]}) + OUTPUTS,
    "two replies": changed() * 2,
    "outputs before the facts": OUTPUTS + frame(FACTS),
    "the greeting again": frame(GREETING) + changed(),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("multiplexed", [False, True], ids=["plain", "multiplexed"])
def test_what_is_no_reply_is_a_broken_slot(name: str, multiplexed: bool) -> None:
    data = docker_frame(BROKEN[name]) if multiplexed else BROKEN[name]
    assert isinstance(Peer(sends(data), multiplexed=multiplexed).ask(), SlotBroken)


@pytest.mark.parametrize(
    "greeting",
    [
        b"",
        frame({}),
        frame({**GREETING, "ready": 2}),
        frame({"ready": 1}),
        frame({**GREETING, "python": 3}),
        frame({**GREETING, "switches": "yes"}),
        frame(b"[" * 100_000),
        b"\xff" * 100,
    ],
)
def test_an_odd_greeting_is_a_broken_slot(greeting: bytes) -> None:
    ours, theirs = socket.socketpair()
    theirs.sendall(greeting)
    theirs.close()
    ended = []
    with pytest.raises(SlotBroken):
        Slot(ours, Origin(), multiplexed=False, end=lambda: ended.append(1))
    assert ended == [1]


def test_tests_need_two_exit_codes() -> None:
    assert isinstance(Peer(sends(changed())).ask(mode="tests"), SlotBroken)
    assert isinstance(Peer(sends(changed(exits=[0, 0]))).ask(mode="tests"), Reply)


def _drip(stream: socket.socket) -> None:
    """A byte at a time, always in time for the next read, and never done."""
    announced = {**FACTS, "sizes": [1000, 1000, 1000]}
    for byte in frame(announced) + b"x" * 2999:
        stream.send(bytes([byte]))
        time.sleep(0.0005)
    time.sleep(LONGEST_S)


def _drip_stderr(stream: socket.socket) -> None:
    while True:
        stream.send(docker_frame(b"x", 2))
        time.sleep(0.0005)


def _flood(data: bytes) -> Callable[[socket.socket], None]:
    def act(stream: socket.socket) -> None:
        while True:
            stream.sendall(data)

    return act


ENDLESS = {
    "silence": (lambda stream: time.sleep(1.0), False),
    "drops": (_drip, False),
    "drops on stderr": (_drip_stderr, True),
    "a flood of zeros": (_flood(b"\0" * 65536), False),
    "a flood of replies": (_flood(changed(id=7)), False),
    "a flood of stderr": (_flood(docker_frame(b"x" * 65536, 2)), True),
    "one endless frame of stderr": (_flood(b"\2\0\0\0\xff\xff\xff\xff" + b"x" * 65536), True),
    "one endless frame": (_flood(b"\1\0\0\0\xff\xff\xff\xff" + b"\0" * 65536), True),
    "empty frames": (_flood(docker_frame(b"") * 1000), True),
    "a stream of its own": (_flood(docker_frame(b"x" * 100, 3)), True),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_a_peer_without_end_is_left_in_time_and_fills_no_memory(name: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    act, multiplexed = ENDLESS[name]
    assert isinstance(Peer(act, multiplexed=multiplexed).ask(), SlotBroken)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 << 10


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


@settings(deadline=None, derandomize=True, max_examples=80)
@given(field=st.sampled_from(sorted(FACTS)), value=JSON, multiplexed=st.booleans())
def test_any_fact_may_be_anything(field: str, value: Any, multiplexed: bool) -> None:
    data = frame({**FACTS, field: value}) + OUTPUTS
    peer = Peer(sends(docker_frame(data) if multiplexed else data), multiplexed=multiplexed)
    found = peer.ask()
    assert isinstance(found, SlotBroken) or is_well_formed(found)


def mutated(data: bytes, rng: random.Random) -> bytes:
    """The same bytes with something cut, doubled, moved or changed."""
    pieces = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        start, end = sorted(rng.randrange(len(pieces) + 1) for _ in range(2))
        kind = rng.randrange(5)
        if kind == 0:
            del pieces[start:end]
        elif kind == 1:
            pieces[start:start] = pieces[start:end]
        elif kind == 2:
            pieces = pieces[start:] + pieces[:start]
        elif kind == 3:
            pieces[start:end] = rng.randbytes(end - start)
        elif pieces:
            pieces[rng.randrange(len(pieces))] ^= 1 << rng.randrange(8)
        pieces = pieces or bytearray(b"\0")
    return bytes(pieces)


def request_of(code: bytes, data: bytes = b"", **changes: Any) -> bytes:
    """What a slot sends for a program."""
    limits = {**Limits(cpu_s=0.2, wall_s=1.0).to_json(), "wall_s": 1.0, "ceiling_s": 2.0}
    header = {
        "id": 1,
        "mode": "program",
        "limits": {**limits, **changes.pop("limits", {})},
        "less_memory": False,
        "blobs": [len(code), len(data)],
        **changes,
    }
    return frame(header) + code + data


HELD = b"""
import resource, time
for name in ('NOFILE', 'FSIZE', 'CPU', 'NPROC', 'CORE', 'AS'):
    limit = resource.getrlimit(getattr(resource, 'RLIMIT_' + name))
    if limit != (resource.RLIM_INFINITY,) * 2 and name == 'AS': continue
    if name != 'AS' and not (0 <= limit[0] == limit[1] <= 70 << 20):
        print('UNBOUN' + 'DED', name, limit)
"""


def answer_of(backend: BwrapBackend, data: bytes, seconds: float = 3.0) -> bytes:
    """What a real guest says to these bytes. Then it hears no more, and must end by itself."""
    slot = backend.start()
    stream = slot._stream
    said = b""
    try:
        stream.sendall(data)
        stream.shutdown(socket.SHUT_WR)
        stream.settimeout(seconds)
        while piece := stream.recv(1 << 16):
            said += piece
    except ConnectionError:
        pass
    finally:
        slot.close()
    return said


@pytest.fixture(scope="session")
def bare(make_bwrap) -> BwrapBackend:
    """A backend without a pool."""
    return BwrapBackend(Limits())


@pytest.mark.bwrap
def test_a_guest_answers_a_request_and_then_ends(bare: BwrapBackend) -> None:
    said = answer_of(bare, request_of(HELD + b"print('ran')"))
    assert said.endswith(b"ran\n")
    assert b"UNBOUNDED" not in said


@pytest.mark.bwrap
@pytest.mark.parametrize(
    "limits",
    [
        {"cpu_s": None},
        {"wall_s": float("inf")},
        {"wall_s": "9"},
        {"ceiling_s": 0},
        {"cpu_s": float("nan")},
        {"memory_mib": 0},
        {"memory_mib": -1},
        {"pids": 0},
        {"pids": -1},
        {"files": -1},
        {"files": True},
        {"tmp_mib": -1},
        {"tmp_mib": 1 << 70},
        {"output_bytes": -1},
        {"output_bytes": float("inf")},
    ],
    ids=str,
)
def test_a_guest_runs_nothing_under_odd_limits(bare: BwrapBackend, limits: dict[str, Any]) -> None:
    said = answer_of(bare, request_of(b"print('ra' + 'n')", limits=limits))
    assert said == b""


@pytest.mark.bwrap
def test_mutated_requests_are_answered_or_end_the_guest(bare: BwrapBackend) -> None:
    rng = random.Random(11)  # noqa: S311 - no secret
    whole = request_of(HELD, b"some input")
    head = len(whole) - len(HELD) - len(b"some input")
    for number in range(12):
        if number % 2:
            data = frame(mutated(whole[4:head], rng)) + whole[head:]
        else:
            data = mutated(whole, rng)
        said = answer_of(bare, data)
        assert b"UNBOUNDED" not in said


@pytest.mark.bwrap
def test_a_box_recovers_from_guests_that_heard_nonsense(make_bwrap) -> None:
    with make_bwrap(slots=1, limits=Limits(cpu_s=0.2, wall_s=0.5)) as box:
        for nonsense in (b"\xff" * 100, frame(b"{}"), frame({"blobs": [1 << 62, 0]}), b"\0\0"):
            assert box.run("print(1)").stdout == "1\n"
            (slot,) = box._slots()._idle
            slot._stream.sendall(nonsense)
            again = box.run("print(2)")
            assert (again.status, again.stdout) == (RunStatus.OK, "2\n")
            assert again.attempts <= 2


# What a candidate writes to the socket between it and its tests, and to its report.
REAL = (
    ["ready"],
    ["value", {"f": {"mine": 0}}],
    ["value", 7],
    ["value", {"mine": 1}],
    ["value", {"yours": 0}],
    ["error", "StopIteration", "x"],
    ["call", 0, [], {"dict": []}],
    ["value", None, [[[1]]]],
)
ODD_VALUES = (
    '["value", ' + "[" * 900 + "]" * 900 + "]",
    '["error", ' + "[" * 900 + "]" * 900 + "]",
    '["error", {"a": ' + "[" * 400 + "1" + "]" * 400 + "}]",
    '["failed", ' + "[" * 900 + "]" * 900 + "]",
    '["failed", {"a": 1}, [2]]',
    '["failed"]',
    '["error", "' + "x" * 20_000 + '"]',
    '{"failed": 1}',
    '["value"]',
    '["value", NaN]',
    '["value", {"Decimal": "sNaN"}]',
    '["value", {"Decimal": "1e999999999999999999"}]',
    '["value", {"int": "0x' + "f" * 10_000 + '"}]',
    '["value", {"Fraction": [1, 0]}]',
    '["value", {"range": [0, 99999999999, 1]}]',
    '["value", {"set": [[1]]}]',
    '["value", {"timedelta": [1e400]}]',
    '["value", {"type": []}]',
    '["value", {"complex": []}]',
    '["value", {"date": 5}]',
    '["value", {"dict": [[1]]}]',
    '["value", {"mine": 0}]',
    '["error", ' + "9" * 4000 + "]",
    "[[1], 2]",
    "7",
    "\ufeff[]",
    '["wrong", 1]',
    '["memory", null]',
)


@settings(deadline=None, derandomize=True, max_examples=150)
@given(
    st.lists(
        st.binary(max_size=40)
        | st.sampled_from(ODD_VALUES).map(str.encode)
        | JSON.map(lambda value: json.dumps(["value", value]).encode()),
        max_size=4,
    ),
    st.sampled_from(["exit", "wall", "output"]),
    st.sampled_from([0, 1, -9, None]),
)
def test_forged_call_reports_pass_nothing(lines: list[bytes], end: str, code: int | None) -> None:
    report = b"\n".join(lines)
    reply = Reply(end, (code,), "", 0.1, 0.1, 9.0, False, 0, True, (b"", b"", report))
    for expected in ("the answer", 1 << 80, (1, (2, 3)), {"k": [1.5]}, {frozenset({4})}):
        check = calls_check(reply, LIMITS, [((1,), expected), ((2,), expected)], 1e-9)
        assert (check.passed, check.total, check.solved) == (0, 2, False)
        assert len(check.reason) < 5000


HOSTILE_CANDIDATE = """
import json, os, random, struct
rng = random.Random({seed})
real = [json.dumps(m).encode() for m in {real!r}]
odd = {odd!r}
def message():
    data = rng.choice(real) if rng.random() < .6 else rng.choice(odd).encode()
    if rng.random() < .2: data = data[:rng.randrange(len(data) + 1)]
    if rng.random() < .2: data = data.replace(b'"', b'[', 1)
    if rng.random() < .1: data = rng.randbytes(20)
    size = rng.choice([len(data)] * 8 + [len(data) - 1, len(data) + 1, 1 << 31, 0])
    return struct.pack('>I', max(size, 0)) + data
def send():
    try: os.write(4, b''.join(message() for i in range(rng.randrange(1, 6))))
    except OSError: pass
if {seed} % 3 == 0: send()
def f(*args):
    send()
    if {seed} % 5 == 0: os._exit(0)
    if {seed} % 7 == 0: os.close(4)
    return 8
"""


@pytest.mark.bwrap
def test_hostile_candidates_are_never_paid(make_bwrap) -> None:
    """The guest's code is the same under every backend."""
    tests = "assert f([1]) == 'the answer'\nassert f(2, k=lambda x: x)[0] == ('other', 1)"
    with make_bwrap(slots=1, limits=Limits(cpu_s=0.5, wall_s=2.0)) as box:
        for seed in range(36):
            code = HOSTILE_CANDIDATE.format(seed=seed, real=REAL, odd=ODD_VALUES)
            check = box.check_tests(code, tests)
            assert (check.passed, check.solved) == (0, False), (seed, check)
            assert check.status not in (RunStatus.SANDBOX_ERROR, RunStatus.BROKE_SANDBOX)
        assert box.check_tests("def f(): return 1", "assert f() == 1").solved


PLAIN = (
    *(type(None), bool, int, float, complex, str, bytes, bytearray, range, type),
    *(list, tuple, set, frozenset, dict, Decimal, Fraction),
    *(datetime.date, datetime.time, datetime.datetime, datetime.timedelta, Remote),
)


@settings(deadline=None, derandomize=True, max_examples=150)
@given(
    st.lists(
        st.sampled_from([json.dumps(m).encode() for m in REAL])
        | st.sampled_from(ODD_VALUES).map(str.encode)
        | st.binary(max_size=30),
        max_size=5,
    ),
    st.integers(-1, 1),
)
def test_a_peer_gives_plain_values_or_ends(messages: list[bytes], off: int) -> None:
    """Whatever comes over the socket is a plain value, a handle, an error or the end."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for data in messages:
            theirs.sendall(struct.pack(">I", max(0, len(data) + off)) + data)
        theirs.shutdown(socket.SHUT_WR)
        peer = Channel(ours.fileno(), lambda operation, target, args: False)
        try:
            value = peer.call(Remote(peer, 0), ([1],), {})
        except PeerGone:
            assert peer.gone is not None
        except Exception as error:
            assert error is peer.last_error  # noqa: PT017 - it may also end in other ways
        else:
            assert type(value) in PLAIN
