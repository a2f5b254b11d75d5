#!/bin/bash
set -euo pipefail
python3 - <<'EOF'
import json
from collections import Counter
lines = [line.split() for line in open("/app/server.log")]
hours = Counter(line[0][:13] for line in lines)
busiest = min(hours, key=lambda hour: (-hours[hour], hour))
json.dump({"levels": Counter(line[1] for line in lines), "busiest": busiest}, open("/app/summary.json", "w"))
EOF
