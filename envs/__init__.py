"""Tasks, episodes and groups: text environments for any trainer."""

from ..verifiers.atomic_io import write_json
from .async_rollout import AsyncExtendingPolicy, AsyncPolicy, arollout
from .audit import CHECKS, AuditFailed, AuditReport, Failure, Finding, Sample, audit, shortened
from .contract import ContractBroken, check
from .curriculum.pass_rates import PassRates
from .curriculum.samplers import EasyToHard, Prioritised, Sampler, TargetRate, Uniform, Weighted
from .datasets.bad_rows import BadRow, BadRowsWarning
from .datasets.library import LIBRARY
from .datasets.mixed import Mixed, levels
from .datasets.reading import DataError, read_rows
from .datasets.source import Generated, Rows, Source, Split
from .define import environment, register_rows
from .episode import Episode, EpisodeGroup, Span
from .filters import Counts, Refill, drop_flat, flat, outcome
from .group_rubric import BestOnly, GroupPart, GroupRubric, ShortReplies, Tournament
from .lead import LeadLength
from .plugins import Plugin, PluginWarning
from .policy import Completion, ExtendingPolicy, FunctionPolicy, Policy
from .policy_judge import PolicyJudge, pairwise_prompt
from .puzzle_env import Puzzle, PuzzleEnv
from .puzzles import PUZZLES
from .registry import (
    RetiredEnvironment,
    UnknownEnvironment,
    arguments,
    make,
    make_group,
    plugins,
    register,
    retire,
    spec,
    specs,
)
from .rejudged import rejudged
from .rollout import completions, grouped, play, rollout, scheduled, stream
from .scoring import (
    Compared,
    Scored,
    StoredCompletion,
    compare,
    read_completions,
    read_referenced,
    read_scored,
    refuse_unwritable,
    score,
    status_pairs,
    write_scored,
)
from .spaces import Unicode
from .spec import EnvSpec
from .state import State, Turn
from .statistics import clustered_interval, pass_at_k, wilson_interval
from .task import Conversation, Message, Task
from .text_env import TextEnv
from .trl.reward import EnvironmentReward
from .trl.spec import TRLSpec
from .turn_tokens import TemplateRewritesHistory
from .vector import GroupVectorEnv

__all__ = [
    "CHECKS",
    "AsyncExtendingPolicy",
    "AsyncPolicy",
    "AuditFailed",
    "AuditReport",
    "BadRow",
    "BadRowsWarning",
    "BestOnly",
    "Compared",
    "Completion",
    "ContractBroken",
    "Conversation",
    "Counts",
    "DataError",
    "EasyToHard",
    "EnvSpec",
    "EnvironmentReward",
    "Episode",
    "EpisodeGroup",
    "ExtendingPolicy",
    "Failure",
    "Finding",
    "FunctionPolicy",
    "Generated",
    "GroupPart",
    "GroupRubric",
    "GroupVectorEnv",
    "LeadLength",
    "Message",
    "Mixed",
    "PassRates",
    "Plugin",
    "PluginWarning",
    "Policy",
    "PolicyJudge",
    "Prioritised",
    "Puzzle",
    "PuzzleEnv",
    "Refill",
    "RetiredEnvironment",
    "Rows",
    "Sample",
    "Sampler",
    "Scored",
    "ShortReplies",
    "Source",
    "Span",
    "Split",
    "State",
    "StoredCompletion",
    "TRLSpec",
    "TargetRate",
    "Task",
    "TemplateRewritesHistory",
    "TextEnv",
    "Tournament",
    "Turn",
    "Unicode",
    "Uniform",
    "UnknownEnvironment",
    "Weighted",
    "arguments",
    "arollout",
    "audit",
    "check",
    "clustered_interval",
    "compare",
    "completions",
    "drop_flat",
    "environment",
    "flat",
    "grouped",
    "levels",
    "make",
    "make_group",
    "outcome",
    "pairwise_prompt",
    "pass_at_k",
    "play",
    "plugins",
    "read_completions",
    "read_referenced",
    "read_rows",
    "read_scored",
    "refuse_unwritable",
    "register",
    "register_rows",
    "rejudged",
    "retire",
    "rollout",
    "scheduled",
    "score",
    "shortened",
    "spec",
    "specs",
    "status_pairs",
    "stream",
    "wilson_interval",
    "write_json",
    "write_scored",
]

register("assay/Arithmetic-v1", "assay.envs.arithmetic:Arithmetic", summary="sums of numbers")
for _name, (_module, _summary) in PUZZLES.items():
    register(f"assay/{_name}-v1", f"assay.envs.puzzles.{_module}:{_name}", summary=_summary)
for _name, (_module, _summary, _needs) in LIBRARY.items():
    register(
        f"assay/{_name}-v1",
        f"assay.envs.datasets.library.{_module}:{_name}",
        needs="; ".join(filter(None, ["data: a file, a folder, or a hub name", _needs])),
        summary=_summary,
    )
register(
    "assay/CodeRepair-v1",
    "assay.envs.tools.code_repair:CodeRepair",
    needs="a sandbox",
    summary="find and mend the bug of a Python function, with tools",
)
register(
    "assay/Harbor-v0",
    "assay.envs.harbor:HarborEnv",
    needs="data: a folder of Harbor tasks; a sandbox with sessions",
    summary="work in a container with a shell and files, on Harbor task folders",
)
for _name in ("Arithmetic", *PUZZLES, *LIBRARY, "CodeRepair"):
    retire(
        f"assay/{_name}-v0",
        f"assay/{_name}-v1",
        "Ids of version 0.1 end in -v0, and replies are read and judged differently since then.",
        substitute=True,
    )
