set -e
mkdir config && printf '[limits]\nrate = 10\n' > config/limits.ini && echo one > a.txt
git add . && git commit -qm 'Add limits'
printf '[limits]\nrate = 25\nburst = 40\n' > config/limits.ini && git commit -qam 'Raise the rate'
git rm -q config/limits.ini && git commit -qm 'Tidy up'
echo two > a.txt && git commit -qam 'Count on'
