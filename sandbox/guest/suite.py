"""Tests as they are written: which statements are tests, and which names are the program's."""

from __future__ import annotations

import ast
import builtins
import re
import sys
import types
from collections import Counter
from collections.abc import Iterable

from .pytest_stub import OFFERED

PROGRAM_MODULES = frozenset(
    {
        *("answer", "candidate", "implementation", "main", "module", "my_module", "program"),
        *("solution", "submission", "your_code", "your_module", "your_solution"),
    }
)
"""Names by which a test file may import the program under test; its entry point is another."""

SHARED = "__shared__"
"""The tests' name of what decorates a class of which the program has one too."""

_EXCEPTION = ("Error", "Exception", "Warning")
CLASS_OF = "__class_of__"
"""The tests' name of :func:`~.library.class_of`."""

OPERATE = "__operate__"
"""The tests' name of :func:`~.library.operate`."""

CHANGED = "__changed__"
"""The tests' name of :meth:`~.channel.Peer.changed`."""

_LIBRARIES = {
    "np": "numpy",
    "numpy": "numpy",
    "pandas": "pandas",
    "pd": "pandas",
    "pytest": "pytest",
}
"""What tests compare with, also where they forgot to import it: never the program's."""

_ARRAYS = {
    "numpy": re.compile(
        r"\b(?:np|pd)\.|\b(?:numpy|pandas)\b"
        r"|\.(?:shape|dtype|ndim|tolist|all|any|astype|mean|std|sum|flatten|reshape|iloc|loc|columns)\b"
    ),
    "pandas": re.compile(r"\bpd\.|\bpandas\b|\.(?:iloc|loc|columns)\b"),
}
"""What names a library, or an attribute of its values, in tests."""

_FILES = re.compile(r"\bopen\(|\bos\.|\b(?:pathlib|shutil|glob|sqlite3)\b|\.read_[a-z]+\(")
"""What may look at the files of a program."""

_BLIND = re.compile(
    r"\bassert(?:Logs|Warns)|\bbuiltins\.input\b|\baddHandler(?=\()|\bcatch_warnings(?=\(record=True)"
    r"|\bsimplefilter(?=\(\s*['\"]error)|\bglobals\(\)(?=\[[^\]\n]*\]\s*=(?!=))"
    # Files that only their owner may open, or in a folder that is read-only.
    r"|\b(?:NamedTemporaryFile|TemporaryDirectory|mkdtemp|mkstemp)(?=\()"
    r"|(?<![\w.])open\(\s*['\"][\w.-]+['\"]\s*,\s*(?:mode\s*=\s*)?['\"][wax]"
    r"|(?<![\w.])(?:mock\.)?patch\(\s*['\"](?!time\.sleep\b)[\w.]+"
    r"|(?<![\w.])(?:mock\.)?patch\.(?:object|multiple|dict)"
    r"\((?!\s*time,\s*['\"]sleep\b)\s*[\w.'\"]+"
    # What may run the files of a program.
    r"|\b(?:subprocess\.(?:run|Popen|call|check_\w+)|os\.(?:system|popen))(?=\()"
    r"|\brun_path\b|\bspec_from_file_location\b|\ballow_pickle\s*=\s*True\b"
    # What a program may read of its process; variables of libraries are only the tests'.
    r"|\bos\.chdir(?=\()"
    r"|\bsys\.argv(?=(?:\[[^\]\n]*\])?\s*\+?=(?!=)|\.(?:append|extend|insert)\()"
    r"|(?<![\w.])(?:os\.)?environ(?=\[\s*['\"](?!MPL|OMP_|TF_|CUDA_|PYTHON|TOKENIZERS_|SDL_)"
    r"[^\]\n]*\]\s*=(?!=)|\.(?:update|setdefault)\()"
)
_SLEEP = re.compile(r"\bpatch(?:\.object)?(?=\(\s*(?:['\"]time\.sleep\b|time,\s*['\"]sleep\b))")
_CALLS = re.compile(
    r"\.(?:assert_(?:called|any_call|has_calls|not_called)|call_(?:count|args)|called\b)"
)
_CAPTURES = re.compile(r"\bredirect_std\w+(?=\()|\bsys\.std(?:out|err)(?=\s*=|['\"])")
"""What looks at, or replaces, parts of this process, and the program runs in another."""

_RUNNERS = frozenset(
    (
        *("eval", "exec", "compile", "joblib.load", "pandas.read_pickle", "yaml.unsafe_load"),
        *("shelve.open", "torch.load"),
        *(f"{m}.load{s}" for m in ("pickle", "marshal", "dill", "cloudpickle") for s in ("", "s")),
    )
)
"""Functions that run, or may run, what they are given."""

_CONTAINERS = frozenset(
    {
        *("list", "dict", "set", "bytearray", "deque", "defaultdict", "Counter", "OrderedDict"),
        *("np", "numpy", "pd", "pandas", "collections"),
    }
)
_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
"""How tests make what goes to the program as a copy."""
_HOLDERS = (*_DISPLAYS, ast.Tuple, ast.Lambda, ast.Name, ast.Attribute)
"""Values that may hold functions."""

_PATCHED = frozenset({"builtins", "datetime", "os", "random", "requests", "subprocess", "time"})
"""Modules that tests change to steer the program."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)


class Suite:
    """Tests as written: asserts, a ``check`` function, ``test_*`` functions and classes of them.

    Attributes:
        setup: statements that come first, and are no tests.
        body: the tests' statements, without those that would only start a test runner.
        units: statements of the body that are each one test.
        functions: the top-level functions, by name.
        uncalled: ``check`` and ``test*`` functions that nothing calls: each is a test, or several.
        text: setup and tests, as written.
        names: what must come from the program, as far as it defines it.
        modules: standard modules used without an import.
        libraries: other modules used without an import, by their names in the tests.
        program_modules: names by which the tests import the program.
        passed: names of what they pass to functions, and use elsewhere too.
        imports_by_name: they import what they test, so other unknown names are mistakes.

    Raises:
        SyntaxError: they do not compile.
        ValueError: nothing is asserted, a part of pytest is used that is not offered, or there
            is a ``check(candidate)`` and nothing says which function to check.
    """

    def __init__(self, setup: str, tests: str, entry_point: str | None) -> None:
        self.entry_point = entry_point
        self.text = f"{setup}\n{tests}"
        self.array_libraries = [name for name, sign in _ARRAYS.items() if sign.search(self.text)]
        self.reads_files = bool(_FILES.search(self.text))
        self.lines = tests.splitlines()
        self.setup = ast.parse(setup, "setup.py").body
        body = ast.parse(tests, "tests.py").body
        whole = ast.Module([*self.setup, *body], [])
        compile(whole, "tests.py", "exec", dont_inherit=True)  # "return" outside of a function
        self._refuse_missing_parts(whole)
        if not any(_asserts(node) for node in ast.walk(whole)):
            raise ValueError("they assert nothing, so every program would pass")
        self.functions = {n.name: n for n in body if isinstance(n, _FUNCTIONS)}
        self.body = self._without_runners(body)
        self._asserting = self._asserting_names()
        self.units = [s for s in self.body if self._is_test(s)]
        self._find_uncalled()
        self._asks_for_classes = ("type(" in self.text or "__class__" in self.text) and (
            "type" not in _bound(ast.walk(whole))
        )
        whole = ast.Module([*self.setup, *self.body], [])
        nodes = list(ast.walk(whole))
        self._find_names(nodes)
        self._find_passed(nodes)
        self._refuse_subclasses(nodes)
        self._refuse_identity(nodes)
        self._refuse_new_globals(nodes)
        self._refuse_running_results(nodes)
        if self.imports_by_name:
            self._refuse_unknown_names(nodes)

    def source(self, node: ast.stmt) -> str:
        """Return the first line of a statement, for a reason."""
        line = self.lines[node.lineno - 1].strip() if node in self.body else "the setup"
        return line if len(line) <= 200 else line[:200] + "..."

    def _refuse_missing_parts(self, whole: ast.Module) -> None:
        """Refuse before anything runs, so that no program can steer the tests into such a line."""
        imported = [n for n in ast.walk(whole) if isinstance(n, ast.Import | ast.ImportFrom)]
        names = {
            alias.asname or alias.name
            for node in imported
            if isinstance(node, ast.Import)
            for alias in node.names
            if alias.name == "pytest"
        }
        used = {
            alias.name
            for node in imported
            if isinstance(node, ast.ImportFrom) and node.module == "pytest"
            for alias in node.names
        } | {
            node.attr
            for node in ast.walk(whole)
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in names
        }
        missing = sorted(used - set(OFFERED) - {"*"})
        if missing:
            raise ValueError(f"pytest.{missing[0]} is not offered here")
        reads = "getvalue" in self.text or ".seek(0)" in self.text
        captured = reads and _CAPTURES.search(self.text)
        spied = _CALLS.search(self.text) and _SLEEP.search(self.text)
        blind = captured or spied or _BLIND.search(self.text)
        if blind:
            raise ValueError(f"{blind[0]}: the program runs in another process")

    def _refuse_unknown_names(self, nodes: list[ast.AST]) -> None:
        """Refuse names that nothing defines, if the tests import all that is the program's."""
        known = _bound(nodes) | set(dir(builtins)) | self.modules | set(self.libraries)
        known |= self.names | {SHARED, "__file__", "__name__", "__doc__", "__builtins__"}
        used = {n.id for n in nodes if isinstance(n, ast.Name)}
        unknown = sorted(used - known)
        if unknown and "*" not in known:
            raise ValueError(f"NameError: nothing defines {unknown[0]!r}")

    def _refuse_subclasses(self, nodes: list[ast.AST]) -> None:
        """Refuse classes derived from the program's, but for exceptions, which are copied.

        And ``case Point(x, y)``: a pattern needs a class of this process.
        """
        own, imported = self._own_names(nodes)
        theirs = self.program_modules | imported - {"*"}
        for pattern in (n.cls for n in nodes if isinstance(n, ast.MatchClass)):
            if _names(pattern) & theirs or not own & {"*", *_names(pattern)}:
                raise ValueError(f"case {ast.unparse(pattern)}(): the class is in another process")
        for node in (n for n in nodes if isinstance(n, ast.ClassDef)):
            for base in node.bases:
                root = base.value if isinstance(base, ast.Attribute) else base
                if not isinstance(root, ast.Name) or ast.unparse(base).endswith(_EXCEPTION):
                    continue
                if root.id in theirs or not own & {"*", root.id}:
                    raise ValueError(
                        f"class {node.name}({ast.unparse(base)}): the program's class is in "
                        "another process"
                    )

    def _own_names(self, nodes: list[ast.AST]) -> tuple[set[str], set[str]]:
        """Return the names that are the tests' or a library's, and those of the program's."""
        ours, others = list[ast.AST](), list[ast.AST]()
        for node in nodes:
            of_program = isinstance(node, ast.ImportFrom) and node.module in self.program_modules
            (ours if of_program else others).append(node)
        own = _bound(others) | {*dir(builtins)} | self.modules | set(self.libraries)
        return own, _imported(ours)

    def _refuse_identity(self, nodes: list[ast.AST]) -> None:
        """Refuse ``f(x) is x`` for a list, dict, array or table: the program gets a copy."""
        copied, passed = set[str](), dict[str, set[str]]()
        for node in nodes:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name, value = node.targets[0].id, node.value
                made = isinstance(value, ast.Call) and ast.unparse(value.func).partition(".")[0]
                if isinstance(value, _DISPLAYS) or made in _CONTAINERS:
                    copied.add(name)
                elif isinstance(value, ast.Call):
                    passed[name] = set(map(ast.unparse, value.args))
        for node in nodes:
            match node:
                case ast.Compare(one, [ast.Is()], [other]):
                    pass
                case ast.Call(ast.Attribute(_, "assertIs"), [one, other, *_]):
                    pass
                case _:
                    continue
            for result, argument in ((one, other), (other, one)):
                name = ast.unparse(argument)
                given = set(map(ast.unparse, getattr(result, "args", ())))
                if name in copied & (given | passed.get(ast.unparse(result), set())):
                    raise ValueError(f"{ast.unparse(node)}: the program gets a copy of {name}")

    def _refuse_new_globals(self, nodes: list[ast.AST]) -> None:
        """Refuse ``solution.LIMIT = 5`` and ``time.time = f``: the program would not see it."""
        for node in nodes:
            if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
                root = node.value
                if not isinstance(root, ast.Name):
                    continue
                patched = root.id in _PATCHED and (root.id, node.attr) != ("time", "sleep")
                stdin = (root.id, node.attr) == ("sys", "stdin")
                if root.id in self.program_modules or patched or stdin:
                    raise ValueError(f"{ast.unparse(node)}: the program runs in another process")

    def _refuse_running_results(self, nodes: list[ast.AST]) -> None:
        """Refuse ``eval(f(x))`` and its like: the program would run among the tests."""
        origins = _origins(nodes)

        def full_name(call: ast.Call) -> str:
            root, dot, rest = ast.unparse(call.func).partition(".")
            return origins.get(root, root) + dot + rest

        calls = [n for n in nodes if isinstance(n, ast.Call) and full_name(n) in _RUNNERS]
        if not calls:
            return
        own, _ = self._own_names(nodes)
        theirs = {n.id for n in nodes if isinstance(n, ast.Name)} - own
        theirs |= self.program_modules | {"candidate", self.entry_point or "candidate"}
        theirs |= {"open", "Path", "pathlib"}  # of files that may be the program's
        assigned = [n for n in nodes if isinstance(n, ast.Assign | ast.NamedExpr | ast.For)]
        for _ in range(3):  # b = f(x); c = b.strip()
            for node in assigned:
                if _names(node.iter if isinstance(node, ast.For) else node.value) & theirs:
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    theirs |= {name for target in targets for name in _names(target)}
        for call in calls:
            reads_file = full_name(call).endswith((".load", ".read_pickle", ".open"))
            if reads_file or any(_names(arg) & theirs for arg in call.args):
                raise ValueError(f"{ast.unparse(call):.100}: what the program gives would run here")

    def raising_lines(self) -> set[int]:
        """Return lines that raise, directly in a ``with`` block, whatever the program does."""
        blocks = [
            statement
            for node in ast.walk(ast.Module(self.body, []))
            if isinstance(node, ast.With | ast.AsyncWith)
            for statement in node.body
        ]
        return {n.lineno for n in blocks if isinstance(n, ast.Raise) or _is_constant(n)}

    def compiled(self, statement: ast.stmt) -> types.CodeType:
        """Compile a statement. CLASS_OF asks for classes; OPERATE guards NumPy's operators."""
        if self._asks_for_classes:
            statement = _Classes().visit(statement)
        if self.passed:
            statement = _Changes(self.passed, self._known).visit(statement)
        if self.array_libraries:
            statement = _Operators().visit(statement)
        return compile(ast.Module([statement], []), "tests.py", "exec", dont_inherit=True)

    def _without_runners(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Leave out ``unittest.main()``, and what a main guard does where a runner skips it."""
        collected = any(
            isinstance(n, _DEFINITIONS) and n.name.lower().startswith("test") for n in body
        )
        kept: list[ast.stmt] = []
        for node in body:
            if isinstance(node, ast.If) and _is_main_guard(node.test):
                kept += [] if collected else node.body
            else:
                kept.append(node)
        return [n for n in kept if not _starts_runner(n)]

    def _asserting_names(self) -> set[str]:
        """Return functions, classes and collections of them that assert, maybe through another."""
        statements = [s for s in [*self.setup, *self.body] if _named(s)]
        found = {
            name
            for statement in statements
            for node in ast.walk(statement)
            # What a class raises may be no assertion: a tree that refuses a key, say.
            if _asserts(node)
            and not (isinstance(node, ast.Raise) and isinstance(statement, ast.ClassDef))
            for name in _named(statement)
        }
        uses = [(_named(s), _names(s)) for s in statements]
        while more := {n for names, used in uses if used & found for n in names} - found:
            found |= more
        return found

    def _is_test(self, statement: ast.stmt) -> bool:
        """Return whether a statement asserts something, by itself or by a function of the tests."""
        if isinstance(statement, _DEFINITIONS):
            return False
        nodes = list(ast.walk(statement))
        if any(map(_asserts, nodes)) or _called(nodes) & self._asserting:
            return True
        runs = isinstance(statement, ast.Expr | ast.For | ast.If | ast.While | ast.With | ast.Try)
        return runs and any(
            isinstance(n, ast.Name) and n.id in self._asserting and not n.id.startswith("test")
            for n in nodes
        )

    def _find_uncalled(self) -> None:
        reached = _called(
            inner
            for node in self.body
            if not isinstance(node, _DEFINITIONS)
            for inner in ast.walk(node)
        )
        while True:
            more = {
                name
                for caller in reached & set(self.functions)
                for name in _called(ast.walk(self.functions[caller]))
            }
            if more <= reached:
                break
            reached |= more
        called = _called(n for node in self.body for n in ast.walk(node))
        self.uncalled = [
            name
            for name in self.functions
            if (name == "check" and name not in called)
            or (name.startswith("test") and name not in reached)
        ]
        self.called = called
        if "check" in self.uncalled and self.entry_point is None:
            parameters = self.functions["check"].args
            if len(parameters.posonlyargs + parameters.args) > len(parameters.defaults):
                raise ValueError("tests with check(candidate) need entry_point, its name")

    def _find_names(self, nodes: list[ast.AST]) -> None:
        self.modules = {
            n.value.id
            for n in nodes
            if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)
        } & set(sys.stdlib_module_names)
        bound = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        bound |= {n.arg for n in nodes if isinstance(n, ast.arg)} | _imported(nodes)
        self.libraries = {
            n.value.id: _LIBRARIES[n.value.id]
            for n in nodes
            if isinstance(n, ast.Attribute)
            and isinstance(n.value, ast.Name)
            and n.value.id in set(_LIBRARIES) - bound
        }
        self.program_modules, by_name, star = set[str](), False, False
        ours = PROGRAM_MODULES | ({self.entry_point} if self.entry_point else set())
        ours = ours - set(sys.stdlib_module_names)
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and node.module in ours:
                node.level = 0  # "from .solution import f": the tests are in no package
                self.program_modules.add(node.module)
                star = star or any(alias.name == "*" for alias in node.names)
                by_name = True
            elif isinstance(node, ast.Import):
                found = {alias.name for alias in node.names} & ours
                self.program_modules |= found
                by_name = by_name or bool(found)
        self.imports_by_name = by_name and not star
        names = {n.id for n in nodes if isinstance(n, ast.Name)} - set(dir(builtins))
        self.names = set() if self.imports_by_name else names - self.modules - set(self.libraries)
        if self.entry_point is not None:
            self.names.add(self.entry_point)
        elif not by_name and not self.names - set(self.functions) and len(self.called) == 1:
            self.names |= self.called  # "assert sum(10, 15) == 6" can only mean the program's sum

    def _find_passed(self, nodes: list[ast.AST]) -> None:
        reads = (n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
        uses = Counter(reads)
        origins = _origins(nodes)
        libraries = {
            name
            for name in _imported(nodes)
            if origins.get(name, name).partition(".")[0] not in self.program_modules
        }
        self._known = {*dir(builtins)} - self.names | libraries | self.modules
        own = self._known | self.functions.keys()
        calls = [n for n in nodes if isinstance(n, ast.Call) and not _asserts(n)]
        arguments = [
            value
            for call in calls
            if not (isinstance(call.func, ast.Name) and call.func.id in own)
            for value in (*call.args, *(keyword.value for keyword in call.keywords))
        ]
        self.passed = {a.id for a in arguments if isinstance(a, ast.Name) and uses[a.id] > 1}


class _Changes(ast.NodeTransformer):
    """``x == [1, 2]`` asks for ``x`` as the program left it; ``f(x) == sorted(x)`` does not.

    Args:
        passed: names that may be arguments of the program's functions.
        known: names that are never the program's.
    """

    def __init__(self, passed: set[str], known: set[str]) -> None:
        self._passed, self._known, self._name = passed, known, ""

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Look at what is compared with a literal."""
        return self._compared(node, [node.left, *node.comparators])

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Look at ``assertEqual`` and its like."""
        return self._compared(node, node.args[:2] if _asserts(node) else [])

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Replace the name that is compared."""
        if node.id != self._name or not isinstance(node.ctx, ast.Load):
            return node
        call = ast.Call(ast.Name(CHANGED, ast.Load()), [node], [])
        return ast.fix_missing_locations(ast.copy_location(call, node))

    def _compared(self, node: ast.AST, sides: list[ast.expr]) -> ast.AST:
        before, found = self._name, [self._variables(side) for side in sides]
        named = [names for names in found if names]
        if len(sides) > 1 and len(named) == 1 and len(named[0]) == 1 and named[0] <= self._passed:
            (self._name,) = named[0]
        self.generic_visit(node)
        self._name = before
        return node

    def _variables(self, side: ast.expr) -> set[str]:
        bounds = (n for n in ast.walk(side) if isinstance(n, ast.Slice))
        return _names(side) - self._known - {name for n in bounds for name in _names(n)}


class _Classes(ast.NodeTransformer):
    """``type(x)`` and ``x.__class__`` become calls, since an object of the program is elsewhere."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Replace ``type(x)``."""
        self.generic_visit(node)
        function = node.func
        alone = len(node.args) == 1 and not node.keywords
        if alone and isinstance(function, ast.Name) and function.id == "type":
            function.id = CLASS_OF
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Replace ``x.__class__``."""
        self.generic_visit(node)
        if node.attr != "__class__" or not isinstance(node.ctx, ast.Load):
            return node
        call = ast.Call(ast.Name(CLASS_OF, ast.Load()), [node.value, ast.Constant(True)], [])
        return ast.fix_missing_locations(ast.copy_location(call, node))


class _Operators(ast.NodeTransformer):
    """``a == b``, ``a != b``, ``a - b`` and ``a.equals(b)`` become calls of OPERATE."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Replace what is inside, then the node."""
        super().generic_visit(node)
        match node:
            case ast.Compare(one, [ast.Eq() | ast.NotEq() as operation], [other]):
                name = "eq" if isinstance(operation, ast.Eq) else "ne"
            case ast.BinOp(one, ast.Sub(), other):
                name = "sub"
            case ast.Call(ast.Attribute(one, "equals"), [other], []):
                name = "equals"
            case _:
                return node
        call = ast.Call(ast.Name(OPERATE, ast.Load()), [ast.Constant(name), one, other], [])
        return ast.fix_missing_locations(ast.copy_location(call, node))


def _asserts(node: ast.AST) -> bool:
    """Return whether it is ``assert``, ``raise``, or a call such as ``self.assertEqual``."""
    if isinstance(node, ast.Assert | ast.Raise):
        return True
    if not isinstance(node, ast.Call):
        return False
    name = ""
    if isinstance(node.func, ast.Attribute):
        name = node.func.attr
    elif isinstance(node.func, ast.Name):
        name = node.func.id
    return name.startswith("assert") or name in ("raises", "fail")


def _imported(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that import statements bind."""
    return {
        (alias.asname or alias.name).partition(".")[0]
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }


def _origins(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """Return the full names of what import statements bind under another, or a shorter, name."""
    found: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom):
            found |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    return found


def _bound(nodes: Iterable[ast.AST]) -> set[str]:
    """Return names that anything binds, anywhere; ``*`` if an import binds all names."""
    names = set[str]()
    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, (*_DEFINITIONS, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
            names.add(node.name or "")
        elif isinstance(node, ast.MatchMapping):
            names.add(node.rest or "")
    return names | _imported(nodes)


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _is_constant(statement: ast.stmt) -> bool:
    """Return whether it is an expression that names builtins only, such as ``1 / 0``."""
    return isinstance(statement, ast.Expr) and all(
        hasattr(builtins, node.id) for node in ast.walk(statement) if isinstance(node, ast.Name)
    )


def _named(node: ast.stmt) -> set[str]:
    """Return the names under which a statement keeps functions that others may call."""
    if isinstance(node, ast.ClassDef):
        collected = "TestCase" in "".join(map(ast.unparse, node.bases)) or node.name[:4] == "Test"
        return set() if collected else {node.name}
    if isinstance(node, ast.Assign) and isinstance(node.value, _HOLDERS):
        return {name for target in node.targets for name in _names(target)}
    return {node.name} if isinstance(node, _FUNCTIONS) else set()


def _called(nodes: Iterable[ast.AST]) -> set[str]:
    return {
        node.func.id
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }


def _is_main_guard(test: ast.expr) -> bool:
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.left, ast.Name)
        and test.left.id == "__name__"
        and isinstance(test.ops[0], ast.Eq)
    )


def _starts_runner(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr | ast.Raise) and any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "main"
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in ("unittest", "pytest")
        for node in ast.walk(statement)
    )
