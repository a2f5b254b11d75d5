#!/bin/bash
set -euo pipefail
cat > /app/durations.py <<'EOF'
import re

FORM = re.compile(r"\s*(?:(\d+)d)?\s*(?:(\d+)h)?\s*(?:(\d+)m)?\s*(?:(\d+)s)?\s*", re.ASCII)


class BadDuration(ValueError):
    pass


def seconds(text):
    found = FORM.fullmatch(text)
    if not found or not any(found.groups()):
        raise BadDuration(text)
    return sum(int(n or 0) * u for n, u in zip(found.groups(), (86400, 3600, 60, 1)))
EOF
