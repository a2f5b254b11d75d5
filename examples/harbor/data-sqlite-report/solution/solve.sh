#!/bin/bash
set -euo pipefail
python3 - <<'EOF'
import csv, sqlite3
query = '''select name, sum(count), sum(count * price) as revenue from sales
           join items on items.id = item_id group by name order by revenue desc'''
with open("/app/report.csv", "w", newline="") as file:
    out = csv.writer(file)
    out.writerow(["name", "sold", "revenue"])
    out.writerows(sqlite3.connect("/app/shop.db").execute(query))
EOF
