"""What a cell of a Python session costs, by how many came before it.

    python benchmarks/python_session.py [--cells 20] [--repeats 5]

Each cell's program runs all earlier cells again, so cheap cells cost the same wherever they stand,
and expensive ones cost more the later they come. Medians of milliseconds, from reply to answer.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

from assay.envs import Completion, Rows, Task
from assay.envs.tools import PythonTool, ToolEnv
from assay.sandbox import Sandbox
from assay.verifiers import Exact

CELLS = {
    "x = 1": "x{i} = {i}",
    "sum of 100,000 squares": "s{i} = sum(j * j for j in range(100_000))",
}


def session(env: ToolEnv, cell: str, cells: int) -> list[float]:
    """Milliseconds for each cell of one session."""
    state, took = env.begin(env.task(0)), []
    for i in range(cells):
        code = {"name": "python", "arguments": {"code": cell.format(i=i)}}
        started = time.perf_counter()
        env.advance([state], [Completion(f"<tool_call>{json.dumps(code)}</tool_call>")])
        took.append(1000 * (time.perf_counter() - started))
        assert not state.ended, state.verdict
    return took


def main() -> None:
    """Measure, and print a line for each kind of cell."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cells", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with Sandbox(slots=1) as box:
        env = ToolEnv(
            Rows([Task("?", "1")]), Exact(), tools=[PythonTool()], sandbox=box, max_turns=10**6
        )
        session(env, "1", 1)  # starts the slot
        for name, cell in CELLS.items():
            runs = [session(env, cell, options.cells) for _ in range(options.repeats)]
            medians = [statistics.median(run[i] for run in runs) for i in range(options.cells)]
            shown = sorted({0, 1, 4, 9, 14, options.cells - 1} & set(range(options.cells)))
            figures = ", ".join(f"{i + 1}: {medians[i]:.1f}" for i in shown)
            print(f"{name}: ms at cell {figures} ({box.backend})")


if __name__ == "__main__":
    main()
