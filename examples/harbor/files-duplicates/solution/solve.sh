#!/bin/bash
set -euo pipefail
cd /app/photos
find . -type f -printf '%P\n' | sort | xargs md5sum |
    awk '{ n[$1]++; p[$1] = p[$1] (p[$1] ? " " : "") $2 } END { for (h in n) if (n[h] > 1) print p[h] }' |
    sort > /app/duplicates.txt
