"""Run untrusted code in a sandbox, and score programs against hidden tests."""

# --8<-- README
from assay import Code, Limits, Sandbox

with Sandbox(limits=Limits(cpu_s=2, memory_mib=128)) as sandbox:
    result = sandbox.run("print(int(input()) * 2)", stdin="21")
    print(result.status, result.stdout)

    code = Code(sandbox)
    tests = {"tests": "assert add(2, 3) == 5", "entry_point": "add"}
    for program in ("def add(a, b): return a + b", "import os; os._exit(0)"):
        verdict = code.verify(f"```python\n{program}\n```", tests)
        print(verdict.score, verdict.status, verdict.reason)
    # --8<--
    assert code.verify("def add(a, b): return a + b", tests).score == 1.0
    assert code.verify("import os; os._exit(0)", tests).score == 0.0
