"""Evaluation: play, keep, sum up, judge again, compare, and look at every reply."""

from .bootstrap import Estimate, bootstrap
from .chosen import chosen_tasks, task_now, with_references_of
from .difference import Difference, Pair, difference, mcnemar
from .eval_policy import (
    BatchEvalPolicy,
    EvalPolicy,
    FilePolicy,
    FunctionEvalPolicy,
    Request,
    Response,
)
from .evaluate import evaluate
from .named_policy import Sampling, find_policy
from .plan import Plan, data_record, environment_record, verifier_record, versions
from .rescore import read_rubric, rescored, rescored_plan
from .run_files import RunWriter, is_run, read_costs, read_groups, read_plan
from .server_policy import ServerFailed, ServerPolicy
from .summary import Tally, costs_of, summary_of
from .vote import ballots, majority, majority_at_k, many_answers

__all__ = [
    "BatchEvalPolicy",
    "Difference",
    "Estimate",
    "EvalPolicy",
    "FilePolicy",
    "FunctionEvalPolicy",
    "Pair",
    "Plan",
    "Request",
    "Response",
    "RunWriter",
    "Sampling",
    "ServerFailed",
    "ServerPolicy",
    "Tally",
    "ballots",
    "bootstrap",
    "chosen_tasks",
    "costs_of",
    "data_record",
    "difference",
    "environment_record",
    "evaluate",
    "find_policy",
    "is_run",
    "majority",
    "majority_at_k",
    "many_answers",
    "mcnemar",
    "read_costs",
    "read_groups",
    "read_plan",
    "read_rubric",
    "rescored",
    "rescored_plan",
    "summary_of",
    "task_now",
    "verifier_record",
    "versions",
    "with_references_of",
]
