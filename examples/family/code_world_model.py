"""Code World Model's setting: repair code over several turns, one tool call each, hidden tests."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from typing import Any

from assay.envs import EpisodeGroup, PassRates, Policy, Rows, State, Task, TextEnv, Turn, play
from assay.family._training import learn
from assay.family._turns import worked_row
from assay.family.trainers import FitConfig, sft
from assay.family_cli import run_script
from assay.grpo import GRPOConfig, ModelPolicy, Row, load_model, tiny_model
from assay.sandbox import Limits, Sandbox
from assay.study import Claim, Outcome, Study, Trial
from assay.verifiers import Code, Status, Verdict

LONGEST = 20  # tokens of a turn
STEPS = 25
SEEN, HIDDEN = (0, 1), (2, 3, 7)  # arguments that the tests call the function with
EASY = 0.95  # tasks that are solved more often than this are left out


class Program(Code):
    """Judges a program that is the whole of what it is given."""

    def program(self, reply: str, reference: dict[str, Any]) -> tuple[str | None, str]:
        """Return the reply itself."""
        return reply, ""


class OneLine(TextEnv):
    """Mend a function of one line.

    Observation: ``f=lambda x:3*x+4`` with one of its numbers wrong. Action: one call a turn: ``t``
    and a program runs the visible tests and shows them, ``s`` and a program submits it. Reward: 1.0
    where a submitted program passes the hidden tests. End: at a submission, at a turn that is no
    call (a format error, 0.0), or after three turns.
    """

    def __init__(self, tasks: Sequence[Task], sandbox: Sandbox, *, max_turns: int = 3) -> None:
        self.code = Program(sandbox, Limits(cpu_s=1, memory_mib=128))
        super().__init__(Rows(list(tasks)), self.code, max_turns=max_turns)

    def respond_many(self, states: Sequence[State], replies: Sequence[str]) -> list[Turn]:
        """Run the visible tests of all episodes that ask for it, side by side."""
        tests = [(s.task.metadata["seen"], r) for s, r in zip(states, replies, strict=True)]
        asked = [(program[1:], seen) for seen, program in tests if program.startswith("t")]
        found = iter(self.code.verify_many([p for p, _ in asked], [s for _, s in asked]))
        turns = []
        for state, reply in zip(states, replies, strict=True):
            if reply.startswith("t"):
                passed = next(found).status is Status.CORRECT
                turns.append(Turn.say(shown(state.task, passed)))
            elif reply.startswith("s"):
                turns.append(Turn.end())
            else:
                turns.append(Turn.end(Verdict.wrong("no call", status=Status.UNPARSEABLE)))
        return turns

    def answer(self, state: State) -> str:
        """Return the program that was submitted."""
        return state.reply[1:] if state.reply.startswith("s") else ""


def shown(task: Task, passed: bool) -> str:
    """Run the visible tests; return their results, as the tool answers."""
    wanted = "".join(f" {x}:{value(task, x)}" for x in SEEN)
    return f"|{'ok' if passed else 'no'}{wanted}|"


def value(task: Task, x: int) -> int:
    """Return the function's right value."""
    a, b = task.metadata["right"]
    return int(a * x + b)


def bugs(split: str) -> list[Task]:
    """List every line with every wrong number for one of its two; a tenth is held out."""
    every_one = [
        (a, b, *wrong)
        for a in range(1, 10)
        for b in range(10)
        for wrong in [(w, b) for w in range(1, 10) if w != a]
        + [(a, w) for w in range(10) if w != b]
    ]
    random.Random(0).shuffle(every_one)  # noqa: S311 - no secret
    cut = len(every_one) // 10
    return [task_of(*n) for n in (every_one[:cut] if split == "test" else every_one[cut:])]


def task_of(a: int, b: int, c: int, d: int) -> Task:
    """Make the task to turn ``c*x+d``, which is shown, into ``a*x+b``."""

    def tests(arguments: Sequence[int]) -> dict[str, str]:
        lines = "\n".join(f"assert f({x}) == {a * x + b}" for x in arguments)
        return {"tests": lines, "entry_point": "f"}

    return Task(
        line(c, d),
        tests(HIDDEN),
        id=f"{a}x+{b} as {c}x+{d}",
        metadata={"right": [a, b], "seen": tests(SEEN)},
    )


def line(a: int, b: int) -> str:
    """Write the source of a function."""
    return f"f=lambda x:{a}*x+{b}"


def hinted(task: Task) -> Task:
    """Copy a task with one of its hidden tests in the prompt."""
    x = HIDDEN[0]
    return Task(
        f"{task.text}?{x}:{value(task, x)}",
        task.reference,
        id=task.id,
        metadata=task.metadata,
    )


def demonstration(tokenizer: Any, task: Task, rng: random.Random) -> Row:
    """Play a clumsy programmer: often submit a guess, and sometimes fix the number after a test."""
    a, b = task.metadata["right"]
    guess = line(a, b) if rng.random() < 0.3 else line(rng.randint(1, 9), rng.randint(0, 9))
    shown_first = rng.random() < 0.5
    turns = [("t" + task.text, shown(task, False))] if shown_first else []
    final = line(a, b) if shown_first and rng.random() < 0.7 else guess
    prompt = hinted(task).text if rng.random() < 0.2 else task.text
    return worked_row(tokenizer, prompt, [*turns, ("s" + final, "")])


def start(trial: Trial) -> None:
    """Train the base model: it makes proper calls, and sometimes fixes the line."""
    model, tokenizer = load_model(tiny_model(trial.start, seed=trial.seed))
    rng = random.Random(trial.seed)  # noqa: S311 - no secret
    rows = [demonstration(tokenizer, task, rng) for task in bugs("train")]
    steps = 5 if trial.short else 150
    config = FitConfig(learning_rate=1e-3, batch_size=64, steps=steps, seed=trial.seed)
    sft(model, tokenizer, rows, config)
    model.save_pretrained(trial.start)


class Chosen:
    """A rollout that knows how often each task was solved.

    Where it is choosy, tasks that are solved nearly always are left out, and those that never
    were come with a hint.
    """

    def __init__(self, env: OneLine, config: GRPOConfig, *, choosy: bool) -> None:
        self.env, self.config, self.choosy = env, config, choosy
        self.tasks = bugs("train")
        self.rates = PassRates(prior=(0.5, 0.5), discount=1.0)

    def __call__(self, policy: Policy, step: int) -> list[EpisodeGroup]:
        """Play a step's tasks, and remember how often each was solved."""
        rng = random.Random(f"{self.config.seed} {step}")  # noqa: S311 - no secret
        chosen: list[Task] = []
        while len(chosen) < self.config.prompts_per_step:
            task = rng.choice(self.tasks)
            passed, failed = self.rates.posterior(task.id)
            if self.choosy and passed / (passed + failed) > EASY:
                continue
            unsolved = self.choosy and passed == 0.5 and failed > 0.5
            chosen.append(hinted(task) if unsolved else task)
        groups = play(self.env, policy, chosen, self.config.group_size)
        for group in groups:
            right = sum(e.status is Status.CORRECT for e in group.episodes)
            self.rates.record(group.task.id, right, len(group.episodes) - right)
        return groups


def train(trial: Trial, *, max_turns: int = 3, choosy: bool = False) -> Outcome:
    """Train with the token-weighted baseline, no standard deviation and no KL."""
    config = GRPOConfig(
        steps=2 if trial.short else STEPS,
        prompts_per_step=4 if trial.short else 16,
        max_new_tokens=LONGEST,
        advantage="opo",
        loss="dr_grpo",
        clip_high=0.28,
        learning_rate=3e-4,
        seed=trial.seed,
        alarm_patience=0,
    )
    held_out = bugs("test")[: 10 if trial.short else 140]
    with Sandbox() as sandbox:
        env = OneLine(bugs("train"), sandbox, max_turns=max_turns)

        def measure(policy: ModelPolicy) -> dict[str, float]:
            episodes = [e for g in play(env, policy, held_out, 1) for e in g.episodes]
            found = {
                "hidden tests passed": sum(e.status is Status.CORRECT for e in episodes),
                "turns taken": sum(m["role"] == "assistant" for e in episodes for m in e.turns),
                "format errors": sum(e.status is Status.UNPARSEABLE for e in episodes),
            }
            return {name: number / len(episodes) for name, number in found.items()}

        tasks, logged = Chosen(env, config, choosy=choosy), ("zero_variance",)
        found = learn(trial, tasks, config, measure, logged, looks=5)
    values = {name: x for name, x in found.values.items() if name not in logged}
    return Outcome(values, found.curves)


STUDY = Study(
    title="Code World Model's setting: repair over several turns",
    source="Meta FAIR, arXiv 2510.02387",
    says="An agent that edits and runs code, makes exactly one tool call a turn, is ended by a "
    "format error and is paid by hidden tests alone learns to use its turns. The baseline is the "
    "mean reward weighted by tokens; tasks that are too easy are dropped, and tasks that nobody "
    "solves get a hidden test as a hint until they are solved.",
    load="Functions of one line with one wrong number (1,530 bugs, a tenth held out), run in "
    "the sandbox; a model of 0.4 million parameters after 150 supervised steps on clumsy "
    f"demonstrations; {STEPS} steps of 16 tasks x 8 episodes, one update each, learning rate 3e-4, "
    "advantage `opo`, loss `dr_grpo`, no KL. A reward of 1 or 0 in place of +1 or -1: the "
    "baseline takes the difference away, and Adam the factor of two. Held out: one episode of "
    "each of 140 tasks, never with a hint. `assay/CodeRepair-v1` is the same setting for models "
    "that write whole programs.",
    tried="100 steps, which ended at .50 in one run, and 50; the curves are flat after 25.",
    equation=(r"b = \frac{\sum_i T_i r_i}{\sum_i T_i}, \qquad A_i = r_i - b"),
    claims=(
        Claim(
            "Training raises the share that passes the hidden tests by .1 at least",
            "hidden tests passed",
            arm="three turns",
            margin=0.1,
        ),
        Claim(
            "The policy learns to test before it submits: it takes more turns",
            "turns taken",
            arm="three turns",
            margin=0.1,
        ),
        Claim(
            "Three turns pass the hidden tests more often than one, by .1 at least",
            "hidden tests passed",
            arm="three turns",
            than="one turn",
            margin=0.1,
        ),
        Claim(
            "Dropping easy tasks and hinting at unsolved ones helps",
            "hidden tests passed",
            arm="three turns, choosy, with hints",
            than="three turns",
        ),
    ),
    remark=(
        "Nearly every episode tests before it submits; with one turn there is only "
        "guessing. With 16 of 1,377 tasks a step hardly any task comes twice, so that "
        "choosing among them can do little."
    ),
    arms={
        "three turns": train,
        "three turns, choosy, with hints": partial(train, choosy=True),
        "one turn": partial(train, max_turns=1),
    },
    prepare=start,
    presets=("opo",),
)

if __name__ == "__main__":
    run_script(__file__)
