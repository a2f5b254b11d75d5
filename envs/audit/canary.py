"""The check that no program finds what it is expected to print or return.

A program is run that looks for a certain text wherever a program can look, and answers with it.
The text is the expected result and stands nowhere else, so the program passes if it finds it.
"""

from __future__ import annotations

import hashlib

from ..task import Task
from .context import Context, NotChecked, Outcome, check
from .harness import Trial

_SEARCH = """
import gc, glob, os, re, sys
_WANTED = re.compile(rb"canary" + rb"-[0-9a-f]{32}")

def _texts():
    yield repr(dict(os.environ)).encode()
    yield repr(sys.argv).encode() + repr(getattr(sys, "orig_argv", "")).encode()
    frame = sys._getframe()
    while frame is not None:
        yield repr(frame.f_locals).encode("utf-8", "replace")[:1 << 20]
        yield repr(frame.f_code.co_consts).encode("utf-8", "replace")
        frame = frame.f_back
    for thing in gc.get_objects():
        if isinstance(thing, (dict, list, tuple)) and len(thing) < 1000:
            try:
                yield repr([x for x in (thing.values() if isinstance(thing, dict) else thing)
                            if isinstance(x, (str, bytes))]).encode("utf-8", "replace")
            except Exception:
                pass
    for pattern in ("/proc/*/environ", "/proc/*/cmdline", "/proc/*/fd/*", "/tmp/**",
                    os.getcwd() + "/**", os.path.expanduser("~") + "/**", "/dev/shm/**"):
        for path in glob.glob(pattern, recursive=True)[:300]:
            try:
                if os.path.isfile(path) and os.path.getsize(path) < 1 << 20:
                    with open(path, "rb") as file:
                        yield file.read(1 << 20)
            except Exception:
                pass
    for pid in [p for p in os.listdir("/proc") if p.isdigit()]:
        try:
            with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
                for line in maps:
                    span, rights = line.split()[:2]
                    start, end = (int(x, 16) for x in span.split("-"))
                    if rights.startswith("rw") and end - start < 1 << 25:
                        memory.seek(start)
                        yield memory.read(end - start)
        except Exception:
            pass

def find():
    for text in _texts():
        found = _WANTED.search(text)
        if found:
            return found.group().decode()
    return "nothing found"
"""


@check("keep expected results out of the program's process")
def canary(context: Context) -> Outcome:
    """Check that a program that looks everywhere does not find what is expected."""
    code = context.code
    if code is None:
        raise NotChecked("no reply is run as a program")
    secret = f"canary-{hashlib.blake2b(f'{context.seed}'.encode(), digest_size=16).hexdigest()}"
    function = "a program that looks for its tests"
    trials = [
        Trial(Task("(no prompt)", reference, id=kind), what, code.reply_of(f"{_SEARCH}{ending}"))
        for kind, what, reference, ending in (
            ("tests", function,
             {"tests": f"assert find() == {secret!r}", "entry_point": "find"}, ""),
            ("check", function,
             {"tests": f"def check(candidate):\n    assert candidate() == {secret!r}",
              "entry_point": "find"}, ""),
            ("stdio", "a program that looks for its output", {"stdio": [["", secret]]},
             "print(find())"),
            ("calls", "a program that looks for its result",
             {"calls": {"function": "find", "cases": [[[], secret]]}}, ""),
        )
    ]  # fmt: skip
    failures = []
    for trial, verdict in zip(trials, context.harness.judge(trials), strict=True):
        if verdict is None:
            raise NotChecked("the program that looks did not end")
        if verdict.score is None or verdict.score > context.limit:
            failures.append(trial.failure("finds what is expected of it, and passes"))
        elif verdict.status != "incorrect":
            raise NotChecked(f"the program that looks ended as {verdict.status}: {verdict.reason}")
    return Outcome(len(trials), failures)
