#!/bin/bash
set -euo pipefail
python3 - <<'EOF'
import csv, json
rows = list(csv.DictReader(open("/app/people.csv", encoding="utf-8")))
for row in rows:
    row["age"] = int(row["age"]) if row["age"] else None
json.dump(rows, open("/app/people.json", "w", encoding="utf-8"), ensure_ascii=False)
EOF
