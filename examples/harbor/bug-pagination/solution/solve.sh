#!/bin/bash
set -euo pipefail
cat > /app/pages.py <<'EOF'
def page(items, number, size):
    if number < 1 or size < 1:
        raise ValueError("pages count from 1 and have at least one item")
    return items[(number - 1) * size : number * size]
EOF
