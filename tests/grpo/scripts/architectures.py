"""Print the forward and the decoder of each architecture, which docs/learner.md lists by both.

python tests/grpo/scripts/architectures.py [DEVICE]
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from test_architectures import ARCHITECTURES, build

from assay.grpo import choose_forward
from assay.grpo.decoder import choose_decoder

for name in ARCHITECTURES:
    model = build(name, *sys.argv[1:])
    row = (name, type(model).__name__, choose_forward(model)[0], choose_decoder(model)[0])
    sys.stdout.write(f"| {' | '.join(row)} |\n")
