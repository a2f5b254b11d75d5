#!/bin/bash
wanted="the 6
fox 5
a 4
hen 4
and 2"
if [ "$(cat /app/top.txt)" = "$wanted" ]; then
    echo 1 > /logs/verifier/reward.txt
else
    echo 0 > /logs/verifier/reward.txt
fi
