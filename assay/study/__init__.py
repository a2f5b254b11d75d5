"""Studies: claims, the arms that test them, and what was measured over several seeds."""

from .measured import Measured, Results, band, means
from .study import Arm, Claim, Outcome, Study, Trial, every, watched

__all__ = [
    "Arm",
    "Claim",
    "Measured",
    "Outcome",
    "Results",
    "Study",
    "Trial",
    "band",
    "every",
    "means",
    "watched",
]
