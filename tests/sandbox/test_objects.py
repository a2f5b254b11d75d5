"""Programs whose tests use objects: right ones win, and no object talks its way to a pass."""

from __future__ import annotations

import pytest

from assay.sandbox import Limits, Sandbox

LIMITS = Limits(cpu_s=2.0, wall_s=10.0, memory_mib=128)

VECTOR = """
class Vec:
    def __init__(self, *x): self.x = list(x)
    def __eq__(self, o): return isinstance(o, Vec) and self.x == o.x
    def __hash__(self): return hash(tuple(self.x))
    def __add__(self, o): return Vec(*(a + b for a, b in zip(self.x, o.x)))
    def __radd__(self, o): return self if o == 0 else NotImplemented
    def __iadd__(self, o): self.x = (self + o).x; return self
    def __sub__(self, o): return Vec(*(a - b for a, b in zip(self.x, o.x)))
    def __mul__(self, k):
        return sum(a * b for a, b in zip(self.x, k.x)) if isinstance(k, Vec) \
            else Vec(*(a * k for a in self.x))
    __rmul__ = __mul__
    def __neg__(self): return Vec(*(-a for a in self.x))
    def __abs__(self): return sum(a * a for a in self.x) ** 0.5
    def __lt__(self, o): return self.x < o.x
    def __getitem__(self, i): return self.x[i]
    def __setitem__(self, i, v): self.x[i] = v
    def __delitem__(self, i): del self.x[i]
    def __len__(self): return len(self.x)
    def __contains__(self, v): return v in self.x
    def __bool__(self): return any(self.x)
    def __repr__(self): return f'Vec{tuple(self.x)}'
    def __format__(self, form): return '<' + ','.join(format(a, form) for a in self.x) + '>'
    def __enter__(self): return self
    def __exit__(self, kind, error, trace): return kind is ZeroDivisionError
    def __call__(self, k): return self.x[k]
"""
STACK = """
class Stack(list):
    def push(self, x): self.append(x)
    def peek(self): return self[-1]
"""

RIGHT = [
    (VECTOR, "assert Vec(1, 2) == Vec(1, 2)\nassert Vec(1) != Vec(2)\nassert not Vec(1) == 5"),
    (VECTOR, "assert Vec(1, 2) + Vec(3, 4) == Vec(4, 6)\nassert (Vec(1) - Vec(3))[0] == -2"),
    (VECTOR, "assert Vec(1, 2) * 3 == Vec(3, 6) == 3 * Vec(1, 2)\nassert Vec(1, 2) * Vec(3, 4) == 11"),
    (VECTOR, "assert abs(Vec(3, 4)) == 5.0\nassert -Vec(1, 2) == Vec(-1, -2)"),
    (VECTOR, "assert (Vec(1, 2) * 3).x == [3, 6]"),
    (VECTOR, "assert Vec(1) < Vec(2)\nassert Vec(2) > Vec(1)\nassert max(Vec(1), Vec(3)) == Vec(3)"),
    (VECTOR, "assert [v.x for v in sorted([Vec(2), Vec(1)])] == [[1], [2]]"),
    (VECTOR, "v = Vec(1, 2)\nv[0] = 9\nassert v.x == [9, 2]\ndel v[0]\nassert len(v) == 1"),
    (VECTOR, "v = Vec(1, 2)\nassert 2 in v\nassert 7 not in v\nassert v[::-1] == [2, 1]"),
    (VECTOR, "v = Vec(1)\nw = v\nv += Vec(2)\nassert w is v and w.x == [3]"),
    (VECTOR, "assert sum([Vec(1), Vec(2)]) == Vec(3)\nassert not Vec(0)\nassert Vec(1)"),
    (VECTOR, "assert len({Vec(1), Vec(1), Vec(2)}) == 2\nassert {Vec(1): 'a'}[Vec(1)] == 'a'"),
    (VECTOR, "assert f'{Vec(1, 2):.1f}' == '<1.0,2.0>'\nassert repr(Vec(1, 2)) == 'Vec(1, 2)'"),
    (VECTOR, "with Vec(1) as v:\n    1 / 0\nassert v(0) == 1"),
    (VECTOR, "with Vec(1):\n    raise ZeroDivisionError('x')\nassert Vec(1)"),
    (VECTOR, "assert Vec(1) in [Vec(2), Vec(1)]\nassert [Vec(1)] == [Vec(1)]"),
    (VECTOR, "v = Vec(1, 2)\ndel v.x\nassert not hasattr(v, 'x')"),
    (VECTOR, "import copy\nv = Vec([1])\nw = copy.deepcopy(v)\nw.x[0] = 1\nassert v == w and v is not w"),
    (VECTOR, "assert list(Vec(1, 2)) == [1, 2]\na, b = Vec(1, 2)\nassert (a, b) == (1, 2)"),
    (VECTOR, "assert list(reversed(Vec(1, 2))) == [2, 1]"),
    (VECTOR, "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n"
     "        self.assertEqual(Vec(1), Vec(1))\n        self.assertNotEqual(Vec(1), Vec(2))\n"
     "        self.assertLess(Vec(1), Vec(2))\n        self.assertIn(1, Vec(1))\n"
     "        self.assertIsInstance(Vec(1), Vec)\n        self.assertTrue(Vec(1))"),
    (VECTOR, "from solution import Vec\nimport pytest\n@pytest.fixture\ndef v(): return Vec(3)\n"
     "def test_v(v): assert v == Vec(3) and v - Vec(1) == Vec(2)\n"
     "def test_bad(v):\n    with pytest.raises(IndexError): v[7]"),
    (STACK, "s = Stack()\ns.push(1)\ns.push(2)\nassert s == [1, 2]\nassert s.peek() == 2\nassert len(s) == 2"),
    (STACK, "s = Stack([3, 1])\ns.sort()\nassert s[0] == 1 and 3 in s\nassert s + [4] == [1, 3, 4]"),
    ("from collections import namedtuple\nQ = namedtuple('Q', 'low high')\ndef f(x): return Q(min(x), max(x))",
     "r = f([2, 1])\nassert r == (1, 2)\nassert r.high == 2\nassert r._asdict() == {'low': 1, 'high': 2}\n"
     "low, high = r\nassert r == Q(1, 2) and isinstance(r, Q) and r[0] == low"),
    ("from typing import NamedTuple\nclass Q(NamedTuple):\n    a: int\n    b: int = 2\n"
     "    def total(self): return self.a + self.b",
     "q = Q(1)\nassert q.total() == 3\nassert q == (1, 2)\nassert q._replace(a=5).total() == 7"),
    ("from collections import Counter\ndef f(s): return Counter(s)",
     "assert f('hello').most_common(1) == [('l', 2)]\nassert f('ab') == {'a': 1, 'b': 1}\nassert f('a')['z'] == 0"),
    ("from collections import defaultdict\ndef f(w):\n    d = defaultdict(list)\n    for x in w: d[x[0]].append(x)\n"
     "    return d", "d = f(['ab', 'ac'])\nassert d == {'a': ['ab', 'ac']}\nassert d['q'] == []"),
    ("from collections import deque\ndef f(q, k): q.rotate(k)", "from collections import deque\n"
     "q = deque([1, 2, 3], maxlen=5)\nf(q, 1)\nassert q == deque([3, 1, 2])\nassert q.maxlen == 5"),
    ("from collections import OrderedDict\nclass LRU:\n    def __init__(self): self.d = OrderedDict()\n"
     "    def put(self, k, v): self.d[k] = v; self.d.move_to_end(k, last=False)",
     "c = LRU()\nc.put('a', 1)\nc.put('b', 2)\nassert list(c.d) == ['b', 'a']"),
    ("from dataclasses import dataclass, field\n@dataclass(order=True, frozen=True)\nclass P:\n    x: int\n    y: int = 0\n"
     "def f(n): return [P(i) for i in range(n)]",
     "assert f(2) == [P(0), P(1, 0)]\nassert P(1) < P(2) <= P(2)\nassert {P(1)} == {P(1)}\nassert f(1)[0].y == 0\n"
     "import pytest\nwith pytest.raises(AttributeError): P(1).x = 3"),
    ("from enum import Enum, IntEnum, Flag\nclass C(Enum):\n    RED = 1\n    BLUE = 2\nclass L(IntEnum):\n    LOW = 1\n"
     "    HIGH = 2\ndef f(n): return C(n)",
     "assert f(1) is C.RED and f(2) == C.BLUE and f(1) != C.BLUE\nassert C['RED'].name == 'RED'\nassert len(list(C)) == 2\n"
     "assert L.HIGH > L.LOW and L.HIGH == 2 and L.HIGH.name == 'HIGH'\nassert C.RED in C\nassert isinstance(f(1), C)"),
    ("import pathlib\ndef f(p): return p.suffix\ndef g(p): return p.parent / 'x.txt'",
     "from pathlib import Path\nassert f(Path('/a/b.py')) == '.py'\nassert g(Path('/a/b')) == Path('/a/x.txt')"),
    ("import functools\ndef twice(g):\n    @functools.wraps(g)\n    def h(*a): return g(g(*a))\n    return h",
     "@twice\ndef inc(x):\n    'more'\n    return x + 1\nassert inc(1) == 3\nassert inc.__name__ == 'inc' and inc.__doc__ == 'more'"),
    ("import functools, inspect\ndef retry(n):\n    def deco(g):\n        @functools.wraps(g)\n        def h(*a, **k):\n"
     "            for i in range(n):\n                try: return g(*a, **k)\n                except ValueError: pass\n"
     "            raise RuntimeError('gave up')\n        return h\n    return deco",
     "calls = []\n@retry(3)\ndef bad(x):\n    calls.append(x)\n    raise ValueError\ntry:\n    bad(1)\n    assert False\n"
     "except RuntimeError as e:\n    assert str(e) == 'gave up' and calls == [1, 1, 1]"),
    ("def f(n):\n    for i in range(n): yield i * i", "assert list(f(3)) == [0, 1, 4]\nassert sum(f(4)) == 14\ng = f(2)\n"
     "assert next(g) == 0 and next(g) == 1\nassert next(g, None) is None\nassert max(f(3)) == 4\nassert 4 in f(3)"),
    ("def f(x): return map(str, x)\ndef g(x): return filter(None, x)\ndef h(a, b): return zip(a, b)",
     "assert list(f([1, 2])) == ['1', '2']\nassert ''.join(f([1, 2])) == '12'\nassert [*g([0, 1])] == [1]\n"
     "assert dict(h('ab', [1, 2])) == {'a': 1, 'b': 2}\nassert sorted(f([2, 1])) == ['1', '2']"),
    ("def f(d): return d.keys()\ndef g(d): return d.items()", "assert f({'a': 1}) == {'a'}\nassert sorted(g({'a': 1})) == [('a', 1)]"),
    ("async def f(x): return x * 2", "import asyncio\nassert asyncio.run(f(4)) == 8\n"
     "async def two(): return await asyncio.gather(f(1), f(2))\nassert asyncio.run(two()) == [2, 4]"),
    ("import asyncio\nasync def f(x):\n    await asyncio.sleep(0.01)\n    if x < 0: raise ValueError('neg')\n    return x",
     "import pytest, asyncio\n@pytest.mark.asyncio\nasync def test_f():\n    assert await f(3) == 3\n"
     "    with pytest.raises(ValueError, match='neg'):\n        await f(-1)\n    assert await asyncio.wait_for(f(1), 5) == 1"),
    ("import asyncio\nclass Pool:\n    def __init__(self): self.n = 0; self.lock = asyncio.Lock()\n"
     "    async def __aenter__(self): self.n += 1; return self\n    async def __aexit__(self, *a): self.n -= 1\n"
     "    async def work(self, g):\n        async with self.lock: return await g(self.n)",
     "import unittest\nclass T(unittest.IsolatedAsyncioTestCase):\n    async def test(self):\n"
     "        async def g(n): return n + 1\n        async with Pool() as p:\n            self.assertEqual(await p.work(g), 2)\n"
     "        self.assertEqual(p.n, 0)"),
    ("async def f(n):\n    for i in range(n): yield i", "import asyncio\nasync def all_of(): return [x async for x in f(3)]\n"
     "assert asyncio.run(all_of()) == [0, 1, 2]"),
    ("import asyncio\nasync def put(q, x): await q\nclass Q:\n    def __init__(self): self.q = asyncio.Queue()\n"
     "    async def get(self): return await self.q.get()\n    async def put(self, x): await self.q.put(x)",
     "import asyncio\nasync def main():\n    q = Q()\n    got, _ = await asyncio.gather(q.get(), q.put(5))\n    return got\n"
     "assert asyncio.run(main()) == 5"),
    ("class Temp:\n    def __init__(self): self.log = []\n    def __enter__(self): self.log.append('in'); return self\n"
     "    def __exit__(self, kind, error, trace):\n        self.log.append(kind.__name__ if kind else 'out')\n        self.said = str(error)",
     "t = Temp()\ntry:\n    with t: raise KeyError('k')\nexcept KeyError: pass\nassert t.log == ['in', 'KeyError']\nassert t.said == \"'k'\""),
    ("from contextlib import contextmanager, suppress\n@contextmanager\ndef ignoring(*kinds):\n    try: yield\n    except kinds: pass",
     "with ignoring(ValueError):\n    raise ValueError('x')\nwith ignoring(ZeroDivisionError):\n    1 / 0\nassert ignoring is not None"),
    ("def f(*a): return ValueError('no')", "e = f()\nassert isinstance(e, ValueError) and str(e) == 'no'"),
    ("class Bad(ValueError):\n    def __init__(self, code): super().__init__(f'code {code}'); self.code = code\ndef f(): raise Bad(7)",
     "try:\n    f()\n    assert False\nexcept Bad as e:\n    assert e.code == 7 and str(e) == 'code 7'"),
    ("class Node:\n    def __init__(self, v, n=None): self.val = v; self.next = n\n"
     "def rev(h):\n    p = None\n    while h: h.next, p, h = p, h, h.next\n    return p",
     "h = rev(Node(1, Node(2)))\nassert h.val == 2 and h.next.val == 1 and h.next.next is None"),
    ("def merge(a):\n    return sorted(a)", "class W:\n    def __init__(self, v): self.v = v\n"
     "    def __lt__(self, o): return self.v < o.v\nassert [w.v for w in merge([W(3), W(1)])] == [1, 3]"),
    ("def total(a):\n    t = a[0]\n    for x in a[1:]: t = t + x\n    return t", "from fractions import Fraction\n"
     "class M:\n    def __init__(self, v): self.v = v\n    def __add__(self, o): return M(self.v + o.v)\n"
     "assert total([M(1), M(2)]).v == 3\nassert total([Fraction(1, 2), Fraction(1, 3)]) == Fraction(5, 6)"),
    ("count = 0\ndef hit():\n    global count\n    count += 1", "hit()\nhit()\nassert count == 2"),
    ("class Frac:\n    def __init__(self, a, b): self.a, self.b = a, b\n    def __float__(self): return self.a / self.b\n"
     "    def __int__(self): return self.a // self.b\n    def __round__(self, n=0): return round(self.a / self.b, n)",
     "assert float(Frac(1, 2)) == 0.5\nassert int(Frac(7, 2)) == 3\nassert round(Frac(1, 3), 2) == 0.33"),
    ("import uuid\ndef f(): return uuid.UUID(int=9)", "import uuid\nassert f() == uuid.UUID(int=9)"),
    ("from functools import partial, lru_cache\n@lru_cache\ndef f(n): return n if n < 2 else f(n - 1) + f(n - 2)\ng = partial(pow, 2)",
     "def check(candidate):\n    assert candidate(30) == 832040\n    assert g(5) == 32\n    assert candidate.cache_info().hits > 0"),
    ("class Solution:\n    def twoSum(self, nums, target):\n        seen = {}\n        for i, n in enumerate(nums):\n"
     "            if target - n in seen: return [seen[target - n], i]\n            seen[n] = i",
     "def check(candidate):\n    assert candidate([2, 7], 9) == [0, 1]\ndef test():\n    check(Solution().twoSum)"),
    ("def f(x, key): return sorted(x, key=key)", "assert f(['bb', 'a'], key=len) == ['a', 'bb']\nassert f([1, 2], lambda v: -v) == [2, 1]"),
    ("def f(d, k): d.setdefault(k, []).append(1)", "from collections import defaultdict\nd = defaultdict(list)\nf(d, 'a')\nassert d == {'a': [1]}"),
    ("import re\ndef f(s): return re.match(r'(?P<a>\\w+)', s)", "m = f('ab c')\nassert m and m.group('a') == 'ab' and m.span() == (0, 2)"),
    ("class Shape:\n    sides = 0\n    @classmethod\n    def make(cls): return cls()\n    @property\n    def area(self): return 4\n"
     "    @staticmethod\n    def unit(): return 'm'\nclass Sq(Shape): sides = 4",
     "assert Sq.make().sides == 4 and Sq().area == 4 and Shape.unit() == 'm'\nassert issubclass(Sq, Shape)\n"
     "assert isinstance(Sq.make(), Shape) and not isinstance(Shape(), Sq)"),
    ("def f(x): return (i for i in sorted(x))", "from solution import f\nimport pytest\n"
     "@pytest.mark.parametrize('x, y', [([2, 1], [1, 2]), ([], [])])\ndef test_f(x, y): assert list(f(x)) == y"),
    ("class A:\n    def __init__(self): self.d = {}\n    def __getattr__(self, n):\n        try: return self.__dict__['d'][n]\n"
     "        except KeyError: raise AttributeError(n)", "a = A()\na.d = {'x': 3}\nassert a.x == 3\nassert not hasattr(a, 'y')"),
    ("class It:\n    def __init__(self, n): self.n = n\n    def __iter__(self): return self\n"
     "    def __next__(self):\n        if not self.n: raise StopIteration\n        self.n -= 1\n        return self.n",
     "assert list(It(3)) == [2, 1, 0]\nfor x in It(1): assert x == 0\nassert 1 in It(3)"),
]  # fmt: skip


LIAR = """
class Liar:
    def __init__(self, *a, **k): pass
    def yes(self, *a): return True
    def me(self, *a): return self
    def zero(self, *a): return 0
for n in 'eq lt le gt ge contains bool instancecheck subclasscheck exit'.split():
    setattr(Liar, f'__{n}__', Liar.yes)
for n in 'add radd sub rsub mul rmul truediv rtruediv mod pow round enter iter iadd isub call getattr getitem neg'.split():
    setattr(Liar, f'__{n}__', Liar.me)
for n in 'hash len int index'.split(): setattr(Liar, f'__{n}__', Liar.zero)
Liar.__ne__ = lambda s, o: False
Liar.__float__ = lambda s: 0.0
Liar.__abs__ = lambda s: 0
Liar.__next__ = lambda s: s
Liar.__str__ = Liar.__repr__ = Liar.__format__ = lambda s, *a: 'seven'
"""
LIES = LIAR + "def f(x): return Liar()\n"
CLAIMS = [
    "assert f(3) == 7",
    "assert 7 == f(3)",
    "assert not f(3) != 7 or 1 / 0",
    "assert f(3) == [7]",
    "assert f(3) == (7,)",
    "assert f(3) == {'a': 7}",
    "assert f(3) == {7}",
    "assert f(3) in (6, 7)",
    "assert f(3) in {7}",
    "assert 7 in f(3)",
    "assert abs(f(3) - 7) < 1e-9",
    "assert f(3) - 7 == 0",
    "assert -1e-9 < f(3) - 7 < 1e-9",
    "assert 6 < f(3) < 8",
    "assert round(f(3), 2) == 7",
    "assert int(f(3)) == 0",
    "assert float(f(3)) == 0.0",
    "assert f(3) * 2 == 14",
    "x = f(3)\nx -= 7\nassert abs(x) < 1",
    "assert sum([f(3), -7]) == 0",
    "assert {7: 1}[f(3)] == 1",
    "assert type(f(3)) is int",
    "assert isinstance(f(3), int)",
    "with f(3) as x:\n    assert x == 7",
    "with f(3) as x:\n    if x != 7: raise KeyError",
    "with f(3) as x:\n    x.value.append(7)\n    assert x == 7",
    "assert sorted(f(3), key=str)[:1] == [7]",
    "assert f(3)[0] == 7",
    "assert f(3).value == 7",
    "assert str(f(3)) == '7'",
    "assert f'{f(3)}' == '7'",
    "from collections import Counter\nassert Counter([f(3)]) == Counter([7])",
    "from fractions import Fraction\nassert f(3) == Fraction(7)",
    "from decimal import Decimal\nassert abs(f(3) - Decimal(7)) < 1",
    "import math\nassert math.isclose(f(3), 7)",
    "import math\nassert math.fsum([f(3), -7]) == 0",
    "import datetime\nassert f(3) - datetime.date(2020, 1, 7) == datetime.timedelta(0)",
    "from pathlib import Path\nassert f(3) == Path('7')",
    "from collections import deque\nassert f(3) == deque([7])",
    "from unittest.mock import ANY\nassert [f(3), 7] == [ANY, f(3)]",
    "import operator\nassert operator.eq(f(3), 7)",
    "class E:\n    v = 7\n    def __eq__(self, o): return self.v == o.v\nassert E() == f(3)",
    "class E:\n    def __init__(self): self.v = 7\nassert f(3) == E()",
    "import dataclasses\n@dataclasses.dataclass\nclass E:\n    v: int\nassert f(3) == E(7)",
    "import json\nassert json.loads(f(3)) == 7",
    "import pytest\nassert f(3) == pytest.approx(7)",
    "import pytest\nassert {'a': f(3)} == pytest.approx({'a': 7.0})",
    "import asyncio\nassert asyncio.run(f(3)) == 7",
    "import asyncio\nasync def g(): return await f(3)\nassert asyncio.run(g()) == 7",
    "import asyncio\nasync def g(): return [x async for x in f(3)]\nassert asyncio.run(g()) == [7]",
    "import bisect\nassert bisect.bisect([1, 7], f(3)) == 2",
    "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertAlmostEqual(f(3), 7)",
    "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertDictEqual(f(3), {7: 7})",
    "from solution import f\ndef test(): assert f(3) == 7",
    "def check(candidate):\n    assert candidate(3) == 7",
]
WRONG = [
    *((LIES, tests) for tests in CLAIMS),
    *((LIES.replace("def f(x): return Liar()", "f = Liar"), tests) for tests in CLAIMS[:20]),
    *((LIES.replace("return Liar()", "return [Liar()]"), tests) for tests in ("assert f(3) == [7]", "assert 7 in f(3)",
      "assert all(abs(a - b) < 1 for a, b in zip(f(3), [7]))", "assert max(f(3)) == 7", "assert sum(f(3)) == 7", "assert f(3)[0] == 7")),
    *((LIES.replace("class Liar:", "class Liar(" + base + "):").replace("    def __init__(self, *a, **k): pass\n", ""), "assert f(3) == " + value)
      for base, value in (("int", "7"), ("str", "'7'"), ("float", "7.0"), ("list", "[7]"), ("dict", "{7: 7}"), ("set", "{7}"), ("tuple", "(7,)"))),
    *((f"import collections, enum, pathlib, uuid, dataclasses, typing, decimal\n{program}", "from collections import *\n" + tests) for program, tests in (
        ("class C(collections.Counter):\n    def __eq__(s, o): return True\ndef f(x): return C()", "assert f(3) == Counter('a')"),
        ("class C(collections.deque):\n    def __eq__(s, o): return True\ndef f(x): return C()", "assert f(3) == deque([7])"),
        ("class C(collections.OrderedDict):\n    def __eq__(s, o): return True\ndef f(x): return C()", "assert f(3) == OrderedDict(a=7)"),
        ("class C(collections.defaultdict):\n    def __eq__(s, o): return True\ndef f(x): return C(int)", "assert f(3) == {'a': 7}"),
        ("class C(collections.UserDict):\n    def __eq__(s, o): return True\ndef f(x): return C()", "assert f(3) == {'a': 7}"),
        ("class C(pathlib.PurePosixPath):\n    def __eq__(s, o): return True\ndef f(x): return C('a')", "import pathlib\nassert f(3) == pathlib.PurePosixPath('7')"),
        ("class C(uuid.UUID):\n    def __eq__(s, o): return True\n    __hash__ = None\ndef f(x): return C(int=3)", "import uuid\nassert f(3) == uuid.UUID(int=7)"),
        ("class C(decimal.Decimal):\n    def __eq__(s, o): return True\n    def __str__(s): return 'x'\ndef f(x): return C(3)", "from decimal import Decimal\nassert f(3) == Decimal(7)"),
        ("class C(typing.NamedTuple):\n    a: int\n    def __eq__(s, o): return True\ndef f(x): return C(3)", "assert f(3) == (7,)"),
        ("Q = collections.namedtuple('Q', 'a')\nQ.__eq__ = lambda s, o: True\ndef f(x): return Q(3)", "assert f(3) == (7,)"),
        ("class C(enum.IntEnum):\n    A = 1\n    def __eq__(s, o): return True\n    __hash__ = None\ndef f(x): return C.A", "assert f(3) == 7"),
        ("class C(str, enum.Enum):\n    A = 'x'\n    def __eq__(s, o): return True\n    __hash__ = str.__hash__\ndef f(x): return C.A", "assert f(3) == '7'"),
        ("@dataclasses.dataclass\nclass C:\n    a: int\n    def __eq__(s, o): return True\ndef f(x): return C(1)", "assert f(3) == 7\nassert f(3) == [7]"),
        ("class L(list):\n    n = 0\n    def p(self): pass\n    def __iter__(self):\n        L.n += 1\n        return iter([L.n])\ndef f(x): return L()", "assert any(f(3) == [i] for i in (50, 60, 70))"),
        ("class D(dict):\n    def __missing__(self, k): return 7\ndef f(x): return D()", "assert f(3) == {'a': 7}"),
        ("def f(x):\n    d = collections.defaultdict(lambda: 7)\n    return d", "assert f(3) == {'a': 7}"),
    )),
    *((program, "assert f([1, 2]) == 3") for program in (
        "import sys, types\nm = types.ModuleType('tests')\nsys.modules['tests'] = sys.modules['solution'] = m\ndef f(x): return m",
        "import builtins\nbuiltins.AssertionError = int\nbuiltins.sum = lambda *a: 3\ndef f(x): return None",
        "import copyreg, pickle\nclass P:\n    def __reduce__(self): return (int, (3,))\ndef f(x): return P()",
        "def f(x): return {'int': '0x3'}", "def f(x): return {'mine': 0}", "def f(x): return {'yours': 0}",
        "import os, json, struct\ndef f(x):\n    d = json.dumps(['value', 3]).encode()\n    os.write(4, struct.pack('>I', len(d)) + d)",
        "import os, json, struct\nfor op in (['error', ['KeyError', 'x', [], {}]], ['value', {'kin': [0, 'int', 3]}], ['value', {'coroutine': 0}]):\n"
        "    d = json.dumps(op).encode()\n    os.write(4, struct.pack('>I', len(d)) + d)\ndef f(x): return 0",
        "import os, json, struct\ndef f(x):\n    for op in (['get', 0, '__globals__'], ['eq', 0, 3], ['content', 0], ['start', 0], ['step', 0], ['cancel', 0]):\n"
        "        d = json.dumps(op).encode()\n        os.write(4, struct.pack('>I', len(d)) + d)",
        "import sys\nfor name, m in list(sys.modules.items()):\n    if 'agent' in name or name.endswith('wire'):\n"
        "        for k, v in list(vars(m).items()):\n            if callable(v) and not isinstance(v, type): setattr(m, k, lambda *a, **k: 3)\ndef f(x): return 0",
        "import sys\nr = sys.modules['_assay.agent_remote'].Remote\nr.__eq__ = lambda s, o: True\ndef f(x): return r(None, 0)",
        "class M(type):\n    def __eq__(c, o): return True\n    def __hash__(c): return 0\n    def __instancecheck__(c, o): return True\n"
        "class f(metaclass=M):\n    def __new__(c, x): return c",
        "class f(Exception):\n    def __eq__(s, o): return True", "class E(Exception):\n    def __eq__(s, o): return True\ndef f(x): return E()",
        "f = type('f', (), {'__class__': property(lambda s: int), '__new__': lambda c, x: object.__new__(c), '__eq__': lambda s, o: True})",
        "import weakref\nclass A:\n    def __eq__(s, o): return True\na = A()\ndef f(x): return weakref.proxy(a)",
        "from unittest.mock import MagicMock\nf = MagicMock()\nf.return_value.__eq__ = lambda s, o: True",
        "import gc\nf = lambda x: next((o for o in gc.get_objects() if type(o) is list and o == [3]), 0)", "f = NotImplemented", "f = ...",
        "def f(x): return NotImplemented", "def f(x): return slice(3)", "f = classmethod(sum)", "f = super", "f = type", "f = bool", "f = list", "f = iter", "f = print",
    )),
    *(("class V:\n    def __init__(s, *a): pass\n    def __sub__(s, o): return s\n    def __abs__(s): return 0\n"
       "    def __eq__(s, o): return True\n    def __lt__(s, o): return True\n    def __contains__(s, o): return True\n"
       "    def __exit__(s, *a): return True\n    def __enter__(s): return s\n    def f(s, *a): return s\n    def g(s, x): return [s]", tests) for tests in (
        "assert 7 in V().g(3)[0]", "assert V(1) == 1", "assert abs(V(1) - 0.5) < 1", "assert V(1) < 2", "assert 7 in V().f(3)", "assert abs(V().f(3) - 7) < 1",
        "assert V().f(1) - 1 == 0", "with V() as v:\n    assert v.f(3) == 7", "with V() as v:\n    assert False",
        "with V() as v:\n    v.g()\nassert V() == 1", "assert V(1) in [7]", "assert [V(1)] == [7]")),
]  # fmt: skip


@pytest.mark.parametrize(("program", "tests"), RIGHT)
def test_right_programs_pass_tests_that_use_their_objects(
    box: Sandbox, program: str, tests: str
) -> None:
    entry_point = "Solution" if "Solution" in program else "f" if "candidate" in tests else None
    check = box.check_tests(program, tests, entry_point=entry_point, limits=LIMITS)
    assert check.solved, check


def test_objects_that_lie_pass_nothing_and_buy_no_fault(box: Sandbox) -> None:
    """One loop, as 150 tests would take longer to name than to run."""
    for program, tests in WRONG:
        entry_point = "f" if "candidate" in tests else None
        check = box.check_tests(program, tests, entry_point=entry_point, limits=LIMITS)
        assert not check.solved, (program, tests, check)
