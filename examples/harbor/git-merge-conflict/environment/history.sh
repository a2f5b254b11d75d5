set -e
printf 'def greet():\n    return "Hello"\n' > greet.py && git add . && git commit -qm 'Greet'
git checkout -qb feature
printf 'def greet(name):\n    return f"Hello, {name}"\n' > greet.py && echo names > notes.txt
git add . && git commit -qm 'Greet by name'
git checkout -q main
printf 'def greet():\n    return "Hello!"\n' > greet.py && git commit -qam 'Greet loudly'
