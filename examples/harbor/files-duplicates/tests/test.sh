#!/bin/bash
wanted="a/one.img b/uno.img
c/three.img c/tres.img zz.img"
if [ "$(cat /app/duplicates.txt)" = "$wanted" ]; then
    echo 1 > /logs/verifier/reward.txt
else
    echo 0 > /logs/verifier/reward.txt
fi
