"""``assay eval``: evaluate a policy in an environment, with confidence intervals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from .agent_place import Backend, agent_env
from .arguments import ByOption, DataOption, EnvName, SetOption, environment_options, settings
from .command import HelpAll
from .console import AsJson, err, out, print_json, progress, say
from .envs import EpisodeGroup, Task, TextEnv, write_json
from .evaluation import (
    EvalPolicy,
    FilePolicy,
    Plan,
    RunWriter,
    Sampling,
    Tally,
    chosen_tasks,
    costs_of,
    data_record,
    environment_record,
    evaluate,
    find_policy,
    many_answers,
    read_costs,
    read_groups,
    verifier_record,
    versions,
)
from .evaluation.eval_policy import GroupEvalPolicy
from .evaluation.evaluate import Judge
from .evaluation.named_policy import FORMS, directory_record, refuse_others
from .evaluation.run_files import SUMMARY
from .evaluation.show import tables
from .naming import found_here, make_to_judge

if TYPE_CHECKING:
    from .gateway import AgentEnv, GatewayConfig

_AT_ONCE = 256
"""Replies of a batch, about: what a kill can cost."""

_sampling = partial(Option, rich_help_panel="Sampling")
_rare = partial(_sampling, hidden=True)
_program = partial(Option, rich_help_panel="Agent programs")
_agent = partial(_program, hidden=True)


def eval_command(
    env: EnvName,
    policy: Annotated[str, Option("--policy", "-p", help=f"{FORMS[0].upper()}{FORMS[1:]}.")],
    n: Annotated[
        int | None,
        Option("-n", "--n", help="Replies to each task. Default: 1, or as many as a file has."),
    ] = None,
    out_path: Annotated[Path | None, Option("--out", "-o", help="The run's directory.")] = None,
    resume: Annotated[bool, Option(help="Resume an interrupted run.")] = False,
    data: DataOption = None,
    setting: SetOption = None,
    limit: Annotated[
        int | None,
        Option(help="Take the first N tasks. Default: all, or 200 of an unlimited generator."),
    ] = None,
    shuffle: Annotated[bool, Option(hidden=True, help="Draw --limit tasks at random.")] = False,
    task: Annotated[
        list[str] | None, Option(hidden=True, help="Only this task, by id or number from 0.")
    ] = None,
    seed: Annotated[int, Option(help="Seed of all draws; replies, tasks, intervals.")] = 0,
    batch: Annotated[
        int | None,
        Option(min=1, hidden=True, help="Tasks per batch. Default: about 256 replies."),
    ] = None,
    model: Annotated[str | None, _sampling(help="Model's name at a server.")] = None,
    max_tokens: Annotated[int | None, _sampling(min=1, help="Maximum tokens of a reply.")] = None,
    temperature: Annotated[float | None, _sampling(min=0, help="Sampling temperature.")] = None,
    top_p: Annotated[float | None, _rare(min=0, max=1, help="Nucleus sampling.")] = None,
    concurrency: Annotated[int, _rare(min=1, help="Concurrent requests to a server.")] = 32,
    retries: Annotated[int, _rare(min=0, help="Retries of a failed request.")] = 4,
    timeout: Annotated[float, _rare(min=0.001, help="Timeout of a request in seconds.")] = 600.0,
    api_key_env: Annotated[
        str | None, _sampling(help="Environment variable with the API key.")
    ] = None,
    field: Annotated[
        list[str] | None,
        _rare(help="An extra field of requests, such as reasoning_effort=low."),
    ] = None,
    device: Annotated[str, _sampling(help="Device of the model.")] = "auto",
    price_in: Annotated[float, _rare(min=0, help="Price per million prompt tokens.")] = 0.0,
    price_out: Annotated[float, _rare(min=0, help="Price per million completion tokens.")] = 0.0,
    agent: Annotated[
        str | None,
        _program(help="Program that plays tasks; see docs/gateway.md."),
    ] = None,
    unsafe_agent: Annotated[
        bool, _agent(help="Run --agent as a process of this machine, isolated from nothing.")
    ] = False,
    agent_backend: Annotated[
        Backend | None, _agent(help="The sandbox of --agent. Default: docker.")
    ] = None,
    agent_image: Annotated[
        str | None, _agent(help="Its image. Default: of `assay sandbox build shell`.")
    ] = None,
    agent_memory: Annotated[
        int, _agent(min=1, help="Memory of a program in the sandbox, MiB.")
    ] = 1024,
    agent_file: Annotated[
        str | None, _agent(help="A file or folder that a program finds in its directory.")
    ] = None,
    agent_answer: Annotated[
        str | None, _agent(help="The program's file to judge. Default: the last message.")
    ] = None,
    agent_time: Annotated[
        float, _agent(min=0.001, help="Seconds of a program, without waiting for the model.")
    ] = 600.0,
    by: ByOption = None,
    as_json: AsJson = False,
    help_all: HelpAll = False,
) -> None:
    """Evaluate a policy: pass@k, maj@k, named rewards, statuses, cost.

    Results are written as they come; after a kill or Ctrl-C, --resume continues.
    Exit code 1: an infrastructure failure left replies without a score.
    """
    kwargs = environment_options(setting, data)
    directory = out_path or Path("runs") / f"eval-{env.rpartition('/')[2]}"
    sampling = Sampling(
        model, max_tokens, temperature, top_p, concurrency, retries, timeout, api_key_env, device,
        settings(field or [], flag="--field"),
    )  # fmt: skip
    made, kwargs = make_to_judge(found_here(env), kwargs, answers=Path(policy).is_file())
    stack = ExitStack()
    try:
        evaluated: EvalPolicy | GroupEvalPolicy
        if agent is None:
            if unsafe_agent or agent_answer or agent_backend or agent_image or agent_file:
                raise ValueError("the options --unsafe-agent and --agent-... go with --agent")
            evaluated = find_policy(policy, made, sampling)
        else:
            played = agent_env(
                made,
                agent,
                unsafe=unsafe_agent,
                backend=agent_backend,
                image=agent_image,
                memory_mib=agent_memory,
                file=agent_file,
                answer_file=agent_answer,
                time_s=agent_time,
                at_once=concurrency,
            )
            program = stack.enter_context(played)
            evaluated = stack.enter_context(_agent_player(program, policy, sampling))
        tasks, counts = _asked(made, evaluated, n, limit, task or [], shuffle, seed)
        refuse_by(by, tasks)
        plan = Plan(
            environment=environment_record(env, kwargs, made),
            verifier=verifier_record(made),
            data=data_record(tasks),
            policy=evaluated.describe(),
            n=n or (0 if isinstance(evaluated, FilePolicy) else 1),
            seed=seed,
            batch=batch or max(1, _AT_ONCE // max(counts)),
            versions=versions(),
        )
        tally = Tally(many_answers=many_answers(made.rubric), by=by)
        with RunWriter(directory, plan, resume=resume) as writer:
            play(made, evaluated, tasks, counts, writer, tally)
    finally:
        stack.close()
        made.close()
    finish(directory, tally, seed, price_in, price_out, as_json=as_json)


@dataclass(frozen=True)
class _AgentPlayer:
    """A program as a policy that plays and judges whole episodes."""

    agent: AgentEnv
    engine: Any
    config: GatewayConfig
    about: dict[str, Any]

    def play(self, tasks: Sequence[Task], count: int, seed: int, /) -> list[EpisodeGroup]:
        return self.agent.play(self.engine, tasks, count, config=self.config, seed=seed)

    def describe(self) -> dict[str, Any]:
        return self.about


@contextmanager
def _agent_player(agent: AgentEnv, policy: str, sampling: Sampling) -> Iterator[GroupEvalPolicy]:
    """Yield what plays tasks by a program; close its engine."""
    from .gateway import GatewayConfig
    from .gateway_cli import engine_of

    served = policy.startswith(("http://", "https://"))
    if not served and not Path(policy).is_dir():
        raise ValueError("--agent needs a transformers directory or a vLLM server's address as -p")
    used = ["max_tokens", "temperature", "top_p", "concurrency", "timeout_s"]
    used += ["model", "api_key_env"] if served else ["device"]
    refuse_others(sampling, used, f"--agent with {policy}")
    given = {"temperature": sampling.temperature, "top_p": sampling.top_p}
    override = {name: value for name, value in given.items() if value is not None}
    config = GatewayConfig(
        max_tokens=sampling.max_tokens or 1024,
        timeout_s=sampling.timeout_s,
        override=override or None,
    )
    about = {
        "kind": "agent",
        "command": list(agent.command),
        "policy": policy if served else directory_record(Path(policy)),
        "sampling": {"max_tokens": config.max_tokens, **override},
        "answer_file": agent.answer_file,
        "time_s": agent.time_s,
        "image": agent.image,
        "files": list(map(str, agent.files)),
    }
    kind: Any = "proxy" if served else "transformers"
    with engine_of(
        kind,
        sampling.model if served else policy,
        policy if served else None,
        api_key_env=sampling.api_key_env,
        device=sampling.device,
    ) as engine:
        yield _AgentPlayer(agent, engine, config, about)


def refuse_by(by: str | None, tasks: Iterable[Task]) -> None:
    """Refuse to group tasks by what none of them has.

    Raises:
        ValueError: none has it.
    """
    if by is None:
        return
    known: set[str] = set()
    for task in tasks:
        known |= set(task.metadata)
        if by in known:
            return
    there = f"they have {', '.join(sorted(known))}" if known else "they have none"
    raise ValueError(f"--by: no task has the metadata {by!r}; {there}")


def finish(
    directory: Path,
    tally: Tally,
    seed: int,
    price_in: float = 0.0,
    price_out: float = 0.0,
    *,
    as_json: bool = False,
) -> None:
    """Write the summary, and print it.

    Raises:
        Exit: with code 1, if replies have no score.
    """
    summary = tally.summary(seed=seed)
    write_json(directory / SUMMARY, summary)
    costs = costs_of(read_costs(directory), price_in, price_out)
    if as_json:
        print_json({"run": str(directory), **summary})
    else:
        for table in tables(summary, costs):
            out.print(table)
        say(f"Run: {directory}\nView it: assay view {directory}")
    if summary["without_score"]:
        say(
            f"{summary['without_score']:,} of {summary['replies']:,} replies have no score, and "
            "are excluded. Fix the cause that their reasons give, then run: assay rescore "
            f"{directory}",
            to=err,
        )
        raise typer.Exit(1)


def _asked(
    env: TextEnv,
    policy: EvalPolicy | GroupEvalPolicy,
    n: int | None,
    limit: int | None,
    named: Sequence[str],
    shuffle: bool,
    seed: int,
) -> tuple[list[Task], list[int]]:
    """Return the tasks and the number of episodes of each."""
    for flag, given in (("-n", n), ("--limit", limit)):
        if given is not None and given < 1:
            raise ValueError(f"{flag} must be at least 1, got {given}")
    if not isinstance(policy, FilePolicy):
        tasks = chosen_tasks(env, limit=limit, named=named, shuffle=shuffle, seed=seed)
        if limit is not None and len(tasks) < limit and not named:
            say(f"{env.name} has {len(tasks):,} different tasks here, not {limit:,}.", to=err)
        return tasks, [n or 1] * len(tasks)
    if shuffle:
        raise ValueError("--shuffle goes with a policy that answers now, not with a file")
    tasks = policy.tasks
    if named:
        wanted = {t.id for t in chosen_tasks(env, named=named)}
        tasks = [t for t in tasks if t.id in wanted]
    elif env.source.size is not None and len(tasks) < env.source.size:
        say(
            f"{env.source.size - len(tasks):,} of {env.source.size:,} tasks have no completion in "
            f"{policy.path}, and are not in the results.",
            to=err,
        )
    tasks = tasks[:limit]
    if not tasks:
        raise ValueError(f"{policy.path} has no completions of these tasks")
    return tasks, _saved(policy, tasks, n)


def _saved(policy: FilePolicy, tasks: Sequence[Task], n: int | None) -> list[int]:
    """Return how many episodes a file has for each task."""
    saved = [len(policy.replies[t.id]) for t in tasks]
    few = sum(count < n for count in saved) if n is not None else 0
    if few:
        say(
            f"{few:,} of {len(tasks):,} tasks have fewer than {n} completions in {policy.path}: "
            "each k counts the tasks that have at least k.",
            to=err,
        )
    return [min(n or count, count) for count in saved]


def play(
    env: TextEnv,
    policy: EvalPolicy | GroupEvalPolicy,
    tasks: Sequence[Task],
    counts: Sequence[int],
    writer: RunWriter,
    tally: Tally,
    judge: Judge | None = None,
) -> None:
    """Evaluate, with a progress bar; tell how to go on after an error."""
    for group in read_groups(writer.directory):
        tally.add(group)
    if writer.done:
        say(f"{writer.done:,} of {len(tasks):,} tasks are done already.", to=err)
    with progress("{task.fields[so_far]}") as bar:
        line = bar.add_task(
            "judging" if judge else "playing", total=len(tasks), completed=writer.done, so_far=""
        )

        def note(groups: Sequence[EpisodeGroup], _: Sequence[dict[str, Any]]) -> None:
            for group in groups:
                tally.add(group)
            known = tally.pass_at_1
            so_far = "" if known is None else f"pass@1 {known:.3f}"
            bar.update(line, advance=len(groups), so_far=so_far)

        try:
            evaluate(env, policy, tasks, counts, writer, judge=judge, note=note)
        except BaseException:
            say(
                f"{writer.done:,} of {len(tasks):,} tasks are in {writer.directory}; --resume goes "
                "on from there.",
                to=err,
            )
            raise
