#!/bin/bash
set -euo pipefail
tr 'A-Z' 'a-z' < /app/story.txt | tr -cs 'a-z' '\n' | grep . | sort | uniq -c |
    sort -k1,1nr -k2,2 | awk 'NR <= 5 { print $2, $1 }' > /app/top.txt
