#!/bin/bash
set -euo pipefail
python3 - <<'EOF'
import json, statistics
values = []
for line in open("/app/values.txt"):
    try:
        values.append(float(line))
    except ValueError:
        pass
median = statistics.median(values)
outliers = sorted(v for v in values if abs(v - median) > 10)
found = {"count": len(values), "mean": statistics.mean(values), "median": median, "outliers": outliers}
json.dump(found, open("/app/statistics.json", "w"))
EOF
