#!/bin/bash
set -euo pipefail
cd /app/reports
for f in report_??-??-????.txt; do
    s=${f#report_}; s=${s%.txt}
    mv "$f" "report_${s:6:4}-${s:0:2}-${s:3:2}.txt"
done
