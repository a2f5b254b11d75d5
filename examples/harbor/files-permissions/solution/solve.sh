#!/bin/bash
set -euo pipefail
cd /app/deploy
find . -type f | while read -r f; do
    case $f in *.key) chmod 600 "$f"; continue;; esac
    if [ "$(head -c 2 "$f")" = '#!' ]; then chmod 755 "$f"; else chmod 644 "$f"; fi
done
