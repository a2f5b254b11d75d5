#!/bin/bash
set -euo pipefail
cd /app
awk -F, 'NR == FNR { name[$1] = $2; next }
         FNR == 1 { print "order,customer,total"; next }
         { printf "%s,%s,%.2f\n", $1, ($2 in name) ? name[$2] : "unknown", $3 }' customers.csv orders.csv > joined.csv
