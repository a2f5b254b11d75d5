# ruff: noqa: E501  # a row of examples is read as a row
"""Hostile answers: each ends in time with an honest status, and the next verdict is right."""

import ast
import asyncio
import importlib.util
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from assay.verifiers import Countdown, Exact, Format, Math, Rubric, Status
from assay.verifiers.maths.worker import WorkerLimits

pytestmark = pytest.mark.slow

LIMITS = WorkerLimits(cpu_s=0.5, memory_mib=600)
DEADLINE_S = 90.0  # far beyond 2 s: the machines that test this are busy
MATH = Math(limits=LIMITS)
NEXT = (r"\boxed{\sqrt{117}}", r"3\sqrt{13}")


def boxed(answer: str) -> str:
    return rf"\boxed{{{answer}}}"


def nested(left: str, right: str, depth: int, inside: str = "1") -> str:
    return left * depth + inside + right * depth


HOSTILE = {
    "tower": r"9^{9^{9^{9}}}", "tower of ten": r"10^{10^{10^{10}}}", "tall tower": "2^{" * 60 + "2" + "}" * 60,
    "tower minus itself": r"9^{9^{9^9}} - 9^{9^{9^9}} + 7", "negative tower": r"10^{-10^{10^{10}}}",
    "tower with x": r"9^{9^{9^{9}}} + x", "big power": r"2^{10^9}", "power of a surd": r"\sqrt{2}^{10^{12}}",
    "tiny": r"10^{-10^9}", "e tower": r"e^{e^{e^{e^{e}}}}", "pi tower": r"\pi^{\pi^{\pi^{\pi^{\pi}}}}", "i tower": "i^{i^{i^{i}}}",
    "factorial": "100000000!", "factorial of factorial": "(10!)!", "factorials": "((3!)!)!", "three factorials": "9!!!", "factorial power": r"(100!)^{100!}",
    "binomial": r"\binom{100000000}{50000000}", "binomial of n": r"\binom{n}{10^{6}}", "choose": r"{1000000 \choose 500000}",
    "sum": r"\sum_{k=1}^{10^9} \frac{1}{k^k}", "sum of sums": r"\sum_{i=1}^{999}\sum_{j=1}^{999}\sum_{k=1}^{999} ijk", "long sum": r"\sum_{k=1}^{1000} k^{1000}",
    "endless sum": r"\sum_{k=1}^{\infty} \frac{\sin k}{k^{k}}", "product": r"\prod_{k=1}^{10^7} k", "product of towers": r"\prod_{k=1}^{1000} k^{k^{k}}",
    "integral": r"\int_{-\infty}^{\infty} e^{-x^2}\cos(\sin(x^3))\,dx", "integral of a tower": r"\int_0^1 x^{x^{x^{x}}}\,dx", "limit": r"\lim_{n\to\infty} \sum_{k=1}^{n} \frac{n!}{k^n}",
    "hard integral": r"\int_0^{1} \frac{\sqrt{\tan(x^5+1)}}{\ln(x^7+2)}\,dx",
    "brackets": nested("(", ")", 900, "x"), "many brackets": nested("(", ")", 59), "braces": nested("{", "}", 900), "fractions": nested(r"\frac{1}{1+", "}", 50),
    "deep fractions": nested(r"\frac{1}{1+", "}", 190), "roots": nested(r"\sqrt{", "}", 55, "2"), "deep roots": nested(r"\sqrt{", "}", 300, "2"),
    "absolute values": "|" * 500 + "x" + "|" * 500, "sines": r"\sin " * 300 + "x", "sines in brackets": nested(r"\sin(", ")", 55), "minus signs": "-" * 1500 + "7",
    "powers of powers": "(" * 50 + "x" + "^2)" * 50, "powers in a row": "x^2" * 300, "nested sets": nested(r"\{", r"\}", 300), "half open": "([" * 400, "floors": nested(r"\lfloor ", r"\rfloor", 50, "x"),
    "root of high degree": r"\sqrt[1000000000]{2}", "root of a root": r"\sqrt[99]{" * 30 + "2" + "}" * 30, "logarithms": nested(r"\ln(", ")", 50, "10"), "angle": r"\sin(10^{1000})", "angle of a tower": r"\sin(10^{10^{12}})",
    "gamma": r"(10^{100})!", "exp": r"\exp(\exp(\exp(\exp(10))))", "hyperbolic": r"\cosh(10^{20})",
    "digits": "7" * 1990, "decimals": "0." + "3" * 1990, "exponent": "1e999999", "exponent of digits": "1e" + "9" * 1000, "period": r"0.\overline{" + "3" * 1900 + "}",
    "long fraction": r"\frac{" + "1" * 900 + "}{" + "3" * 900 + "}", "power of digits": "9" * 900 + "^{" + "9" * 900 + "}", "zero to zero": "0^0", "zero over zero": r"\frac{0}{0}",
    "zero to minus one": "0^{-1}", "infinity over infinity": r"\frac{\infty}{\infty}", "infinity minus infinity": r"\infty - \infty",
    "matrix": r"\begin{pmatrix}" + r" \\ ".join(" & ".join("1" for _ in range(15)) for _ in range(15)) + r"\end{pmatrix}", "determinant": r"\det\begin{pmatrix}" + r" \\ ".join(" & ".join("x" for _ in range(10)) for _ in range(10)) + r"\end{pmatrix}",
    "matrix power": r"\begin{pmatrix}1&1\\1&0\end{pmatrix}^{1000000000}", "unfinished matrices": r"\begin{pmatrix}" * 100, "arrays": r"[\begin{array}{c}1" * 80,
    "list": ",".join("7" * 990), "list of formulas": ",".join(rf"\sqrt{{{k}}}" for k in range(200)), "set of sums": r"\{" + ",".join(f"x+{k}" for k in range(300)) + r"\}", "unions": r"\cup".join(f"({k},{k + 1})" for k in range(200)),
    "tuple": "(" + ",".join(["1"] * 600) + ")", "ratios": ":".join(["1"] * 900), "equalities": "7=" * 900 + "8", "inequalities": "<".join(["x"] * 900), "signs": r"\pm 1" * 300, "plus or minus": ",".join([r"\pm 1"] * 200),
    "polynomial": "+".join(f"x^{{{k}}}" for k in range(150)), "power of a sum": r"(a+b+c+d+e+f+g)^{1000}", "many names": "+".join(f"x_{{{k}}}" for k in range(150)),
    "backslashes": "\\" * 1900, "dollars": "$" * 1900, "commas": "," * 1900, "spaces": " ," * 900, "letters": "a" * 1900, "words": "or " * 600, "texts": r"\text{or}" * 200, "carets": "^" * 1900, "underscores": "x_" * 900,
    "commands": r"\frac" * 390, "left": r"\left(" * 300, "fullwidth": "７７７", "arabic": "٧", "superscripts": "2⁹⁹⁹", "joined": "7\u200d7", "right to left": "\u202e7", "null": "7\x007", "surrogate": "\ud800", "emoji": "7️⃣", "combining": "7" + "\u0301" * 1000,
    "percent": "%" * 1900, "python": "__import__('os').system('true')", "format": "{0.__class__}%s%n", "attributes": "().__class__.__bases__[0].__subclasses__()", "nan": "nan", "inf": "1e400", "hex": "0x7", "underscored": "1_000",
}  # fmt: skip
TEXTS = {
    "dollars": "$" * 1_000_000, "open brackets": r"\[" * 300_000, "boxes": r"\boxed{" * 140_000, "thoughts": "<think>" * 140_000, "brackets": "(" * 1_000_000, "answers": "answer is " * 100_000, "tags": "<answer>" * 120_000, "hashes": "#" * 1_000_000,
    "numbers": "7 " * 500_000, "spaces": " " * 1_000_000, "closing": "}" * 1_000_000, "ends": "<|im_end|>" * 100_000, "closed boxes": r"\boxed{7} " * 100_000, "lines": "\n" * 1_000_000, "boxed braces": r"\boxed{" + "{" * 500_000 + "}" * 500_000 + "}",
    "digits": "7" * 1_000_000, "boxed digits": r"\boxed{" + "7" * 1_000_000 + "}", "nested boxes": r"\boxed{" * 70_000 + "}" * 70_000, "backslashes": "\\" * 1_000_000, "phrases": "the answer is 7? " * 60_000,
}  # fmt: skip
CHEAP = (
    "tower", "factorial", "digits", "list", "unions", "polynomial", "many names", "long sum",
    "set of sums", "tuple",
)  # fmt: skip
GOLDS = ("7", r"3\sqrt{13}", "x^2+1")


def test_there_are_enough_of_them() -> None:
    assert len(HOSTILE) + len(TEXTS) >= 76


def test_hostile_answers_end_with_an_honest_status() -> None:
    started = time.perf_counter()
    verdicts = MATH.verify_many(
        [boxed(answer) for answer in HOSTILE.values()], ["7"] * len(HOSTILE)
    )
    assert time.perf_counter() - started < DEADLINE_S * 6
    for name, verdict in zip(HOSTILE, verdicts, strict=True):
        assert verdict.score == 0.0, (name, verdict)
        assert not verdict.status.ours, (name, verdict)
    assert MATH.verify(*NEXT).score == 1.0


@pytest.mark.parametrize("name", TEXTS)
def test_a_megabyte_of_anything_is_judged_in_a_moment(name: str) -> None:
    started = time.process_time()
    verdict = MATH.verify(TEXTS[name], "123456")
    assert time.process_time() - started < 20
    assert verdict.score == 0.0
    assert MATH.verify(*NEXT).score == 1.0


def test_eight_threads_and_any_order_find_the_same() -> None:
    names = sorted(HOSTILE)[::7]
    replies, golds = [boxed(HOSTILE[n]) for n in names], [GOLDS[k % 2] for k in range(len(names))]
    alone = Math(limits=LIMITS).verify_many(replies, golds)
    fresh = Math(limits=LIMITS)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(fresh.verify, replies[::-1], golds[::-1]))[::-1]
    assert [v.score for v in found] == [v.score for v in alone]
    assert [v.status for v in found] == [v.status for v in alone]


def test_an_event_loop_goes_on_meanwhile() -> None:
    math = Math(limits=LIMITS)
    replies = [
        boxed(HOSTILE[name]) for name in ("integral", "tower with x", "determinant", "limit")
    ]

    async def run() -> tuple[list[Status], float]:
        lag, done = 0.0, False

        async def watch() -> None:
            nonlocal lag
            while not done:
                before = time.perf_counter()
                await asyncio.sleep(0.005)
                lag = max(lag, time.perf_counter() - before - 0.005)

        watcher = asyncio.create_task(watch())
        verdicts = await math.averify_many(replies, ["x^2+1"] * len(replies))
        done = True
        await watcher
        return [v.status for v in verdicts], lag

    statuses, lag = asyncio.run(run())
    assert not any(status is Status.CORRECT or status.ours for status in statuses)
    assert lag < 2.0  # usually some milliseconds; a verdict in the loop itself would hold it longer


def test_no_payload_runs(tmp_path: Path) -> None:
    """Whatever a verifier does with a reply, nothing in it is evaluated or opened."""
    marker = tmp_path / "marker"
    code = f"open({str(marker)!r}, 'w').write('7')"
    system = f"__import__('os').system('touch {marker}')"
    payloads = [
        code, system, f"{code}*2\\pi", f"exec({code!r})", f"eval({code!r})", f"\\text{{{system}}}", f"\\input{{|touch {marker}}}", f"\\write18{{touch {marker}}}", f"\\immediate\\write18{{touch {marker}}}", f"`touch {marker}`", f"$(touch {marker})",
        f"; touch {marker} ;", f"cos\nsystem\n(S'touch {marker}'\ntR.", f"!!python/object/apply:os.system ['touch {marker}']", f"{{0.__init__.__globals__[os].system('touch {marker}')}}", f"{{{{{system}}}}}", f"lambda: {system}", f"[{system} for _ in (1,)]", f"x + {code}",
        f"\\operatorname{{{system}}}(x)", f"\\frac{{{code}}}{{2}}", f"sympify({code!r})", f"1 if {code} else 2", f"file://{marker}", f"Symbol({system!r})", f"({system}, 1)", f"\\{{{system}, 1\\}}", f"x = {system}", f"{system} < 3", f"2:{system}", f"{system}_{{5}}",
    ]  # fmt: skip
    frames = [
        "{}", r"\boxed{{{}}}", "<answer>{}</answer>", "#### {}", "The answer is {}.",
        "<think>a 1</think> <answer>{}</answer>", "$${}$$",
    ]  # fmt: skip
    verifiers = [
        (Math(limits=LIMITS), r"2\pi"), (Math(limits=LIMITS, extract=("whole",)), r"\int_0^1 x\,dx"), (Exact(), "7"), (Format(), None), (Countdown(), {"numbers": [3, 7], "target": 21}),
        (Rubric({"right": Math(), "form": Format()}, gate="right"), "7"),
    ]  # fmt: skip
    for verifier, reference in verifiers:
        replies = [
            frame.replace("{{", "{").replace("}}", "}").replace("{}", payload)
            for payload in payloads
            for frame in frames
        ]
        replies = replies if not isinstance(verifier, Math) else replies[1::7]
        verifier.verify_many(replies, [reference] * len(replies))
        assert not marker.exists(), type(verifier).__name__
    for payload in payloads[
        :12
    ]:  # nor in a reference, which may come from a file of somebody else's
        Math(limits=LIMITS).check_reference(payload)
    assert not marker.exists()


EVALUATE = {"eval", "exec", "compile", "__import__", "sympify", "parse_expr", "alarm"}
UNPICKLE = {"pickle", "cloudpickle", "dill", "marshal", "shelve"}
IN_THE_SANDBOX = ("sandbox/guest/", "envs/tools/python_runner.py", "envs/harbor/guard.py")
OUR_OWN = ("envs/audit/worker.py", "envs/contract.py")  # what another process of ours has pickled


def evaluations(source: str) -> list[str]:
    """What a source calls that evaluates or unpickles."""
    found = []
    for node in ast.walk(ast.parse(source)):
        name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        owner, _, last = name.rpartition(".")
        builtin = owner in ("", "builtins") or last not in ("eval", "exec", "compile")
        bare = last in EVALUATE and builtin
        if bare or (owner in UNPICKLE and last.startswith(("load", "Unpickler"))):
            found.append(name)
    return found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("eval('1')", ["eval"]),
        ("sympy.sympify(x); signal.alarm(1)", ["sympy.sympify", "signal.alarm"]),
        ("pickle.loads(b)", ["pickle.loads"]),
        ("builtins.exec('1')", ["builtins.exec"]),
        ("re.compile('eval('); model.eval(); session.exec('ls'); pickle.dumps(1)", []),
    ],
)
def test_what_evaluates_is_seen(source: str, found: list[str]) -> None:
    assert evaluations(source) == found


@pytest.mark.parametrize("room", ["sandbox", "verifiers", "envs", "grpo", "service", "adapters"])
def test_the_sources_evaluate_nothing(room: str) -> None:
    found = importlib.util.find_spec(f"assay.{room}")  # without its extras
    folder = Path((found.origin if found else None) or "").parent
    paths = list(folder.rglob("*.py"))
    assert len(paths) > (100 if room == "verifiers" else 5)  # the whole room, not its top alone
    for path in paths:
        name = f"{room}/{path.relative_to(folder).as_posix()}"
        if not name.startswith((*IN_THE_SANDBOX, *OUR_OWN)):
            assert evaluations(path.read_text()) == [], name


def test_memory_stays_bounded() -> None:
    code = (
        "from assay.verifiers import Math; import sys\n"
        "sys.path.insert(0, sys.argv[1]); import test_pathological as t\n"
        "m = Math(limits=t.LIMITS)\n"
        "cheap = [a for n, a in t.HOSTILE.items() if n in t.CHEAP]\n"
        "m.verify_many([t.boxed(a) for a in cheap], ['7'] * len(cheap))\n"
        "m.verify_many(list(t.TEXTS.values()), ['7'] * len(t.TEXTS))\n"
        # ru_maxrss would count what the parent held when it forked
        "status = open('/proc/self/status').read()\n"
        "print(int(status.split('VmHWM:')[1].split()[0]) // 1024)"
    )
    here = str(Path(__file__).parent)
    found = subprocess.run(
        [sys.executable, "-c", code, here], capture_output=True, text=True, check=True
    )
    assert int(found.stdout) < 800
