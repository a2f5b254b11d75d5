"""What share of a corpus of Harbor tasks can be read, starts here, and pays an idle agent.

    python benchmarks/harbor_corpus.py FOLDER --tasks 300

Reads every task folder, then starts ``--tasks`` of those whose image can be built, spread evenly
over the corpus, lets an agent do nothing in each, and grades it. Images come from this machine: let
one stand for what the corpus starts from with ``docker tag``.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import docker.errors

from assay.envs.harbor import Trial, nop, read_task, run_trial, task_folders
from assay.envs.harbor.folder import folder_digest
from assay.sandbox import Sandbox
from assay.sandbox.backends.docker import connect


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tasks", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    began = time.monotonic()
    read = [read_task(folder) for folder in task_folders(options.folder)]
    refused = [check.findings[0] for task, check in read if task is None]
    imageless = [check for task, check in read if task is not None and check.findings]
    usable = [task for task, check in read if task is not None and not check.findings]
    unknown = collections.Counter(
        note for _, check in read for note in check.notes if "unknown key" in note
    )
    print(f"read                       {len(read)} in {time.monotonic() - began:.0f} s")
    print(f"refused by name            {len(refused)}")
    for why in refused:
        print(f"    {why}")
    print(f"image not here             {len(imageless)}")
    print(f"unknown keys               {dict(unknown) or 'none'}")
    client = connect()
    folders = {task.id: task.folder for task in usable}

    def trial(at: int) -> Trial:
        done = run_trial(usable[at], nop, box, name="nop")
        fault = done.graded.verdict.reason if done.reward is None else ""
        print(f"  {usable[at].folder.name}: {done.reward} {fault[-150:]!r}", flush=True)
        return done

    step = max(1, len(usable) // options.tasks)
    order = sorted(range(len(usable)), key=lambda at: (at % step, at))
    trials: list[Trial] = []
    with Sandbox(backend="docker") as box, ThreadPoolExecutor(options.jobs) as pool:
        while order and sum(t.graded.fault != "bad_task" for t in trials) < options.tasks:
            chunk, order = order[: options.jobs * 4], order[options.jobs * 4 :]
            trials += pool.map(trial, chunk)
    for one in trials:
        tag = f"assay-harbor:{folder_digest(folders[one.task] / 'environment')}"
        with contextlib.suppress(docker.errors.ImageNotFound):
            client.remove_image(tag)
    client.close()
    faults = collections.Counter(t.graded.fault for t in trials if t.reward is None)
    scored = [t for t in trials if t.reward is not None]
    paid = [t.task for t in scored if t.reward]
    grading = collections.Counter(t.graded.grading for t in scored)
    print(f"image cannot be built      {faults.pop('bad_task', 0)}")
    print(f"started and graded         {len(scored)}: {dict(grading)}")
    print(f"no score                   {dict(faults) or 0}")
    print(f"pay an idle agent          {len(paid)} ({len(paid) / max(1, len(scored)):.1%}) {paid}")
    seconds = sorted(t.seconds for t in scored)
    if seconds:
        print(f"seconds of a trial         {seconds[len(seconds) // 2]:.1f} (median)")
    why = collections.Counter(
        re.sub(r".*?, (line \d+: )?", "", t.graded.verdict.reason)[:60]
        for t in trials
        if t.graded.fault == "bad_task"
    )
    print("most frequent faults of builds", why.most_common(5))


if __name__ == "__main__":
    main()
