set -e
echo 'echo $((1 + 2 + 3 + 4))' > total.sh && git add . && git commit -qm 'Add total'
for i in 1 2 3 4 5; do echo $i > log.txt && git add . && git commit -qm "Note $i"; done
echo 'echo $((1 + 2 + 3 - 4))' > total.sh && git commit -qam 'Simplify'
for i in 6 7 8; do echo $i > log.txt && git commit -qam "Note $i"; done
