"""Judges replies: text and a reference in, a Verdict out."""

from __future__ import annotations

from .cluster import RayVerifier
from .exact import Exact
from .families.countdown import Countdown
from .families.integral import Integral
from .families.multiple_choice import MultipleChoice
from .families.short_answer import ShortAnswer
from .form.boxed import Boxed
from .form.citations import Citations
from .form.commitment import Commits
from .form.compression import Compression
from .form.cosine import CosineLength
from .form.format import Format
from .form.json_fields import JsonFields
from .form.json_schema import JsonSchema
from .form.json_value import Json
from .form.language import Language
from .form.length import Length
from .form.markdown import MarkdownStructure
from .form.overlong import SoftOverlong
from .form.pattern import Pattern
from .form.repetition import Repetition
from .form.tool_call import ToolCall
from .form.xml import XmlStructure
from .judges.judge import Judge
from .judges.pairwise import PairwiseJudge
from .judges.reward_model import RewardModel
from .maths.maths import Math
from .maths.number import read_number
from .program import Code
from .rubric import Rubric
from .verdict import Status, Verdict
from .verifier import FunctionVerifier, Verifier
from .winning import given_as

__all__ = [
    "Boxed",
    "Citations",
    "Code",
    "Commits",
    "Compression",
    "CosineLength",
    "Countdown",
    "Exact",
    "Format",
    "FunctionVerifier",
    "Integral",
    "Json",
    "JsonFields",
    "JsonSchema",
    "Judge",
    "Language",
    "Length",
    "MarkdownStructure",
    "Math",
    "MultipleChoice",
    "PairwiseJudge",
    "Pattern",
    "RayVerifier",
    "Repetition",
    "RewardModel",
    "Rubric",
    "ShortAnswer",
    "SoftOverlong",
    "Status",
    "ToolCall",
    "Verdict",
    "Verifier",
    "XmlStructure",
    "given_as",
    "read_number",
]
