#!/bin/bash
set -euo pipefail
cd /app/logs
tar -czf 2023.tar.gz 2023-*.log
rm 2023-*.log
