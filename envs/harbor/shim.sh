#!/bin/sh
# Stands before python, pytest and uv in the tests' PATH: the tests' own Python runs as root under the
# guard, any other as the agent's user. @PYTHON@ and @UID@ are filled in.
real=@PYTHON@

trusted() {
    export ASSAY_GUARD=1 PYTHONPATH=/assay/guard:/tests PYTHONSAFEPATH=1 PYTHONNOUSERSITE=1
    exec "$real" "$@"
}

run_pytest() {
    n=$#
    while [ "$n" -gt 0 ]; do # a report that nobody here reads, by a plug-in that may be missing
        arg=$1; shift; n=$((n - 1))
        case $arg in
        --ctrf | --json-report-file) shift; n=$((n - 1)) ;;
        --ctrf=* | --json-report*) ;;
        *) set -- "$@" "$arg" ;;
        esac
    done
    ini="-c /dev/null --rootdir=/tests"
    for file in pytest.ini .pytest.ini pyproject.toml tox.ini setup.cfg; do
        [ -e "/tests/$file" ] && ini="-c /tests/$file"
    done
    trusted -m pytest $ini --basetemp=/tmp/assay-pytest -p no:cacheprovider "$@"
}

case ${0##*/} in
pytest | py.test) run_pytest "$@" ;;
uv | uvx)
    run=
    [ "${0##*/}" = uv ] || run=run
    while [ $# -gt 0 ]; do
        case $run:$1 in
        :run) run=run ;;
        run:pytest | run:pytest@*) shift; run_pytest "$@" ;;
        run:python*) shift; exec /assay/bin/python3 "$@" ;;
        run:-m | run:*.py) exec /assay/bin/python3 "$@" ;;
        esac
        case $1 in
        -p | --python | -w | --with | --from) shift ;;
        esac
        shift
    done
    [ "$run" ] || exit 0 # uv init, add, sync, pip: there is no network, and the image has what it has
    echo "uv runs Python and pytest only here" >&2
    exit 127
    ;;
esac

while :; do # these change no result
    case ${1-} in
    -u | -B | -q | -W?* | -X?*) shift ;;
    -W | -X) shift 2 ;;
    *) break ;;
    esac
done
case ${1-} in
-m)
    case ${2-} in
    pytest) shift 2; run_pytest "$@" ;;
    unittest) # tests of the agent's folders are its modules, in which there are none to be found
        case "$PWD/ $* " in
        /tests/* | *" /tests"* | *" -s/tests"* | *"=/tests"*) trusted "$@" ;;
        esac
        ;;
    esac
    ;;
-c | - | '') trusted "$@" ;;
-*) ;;
*)
    case $(readlink -f -- "$1") in
    /tests/*) trusted "$@" ;;
    esac
    ;;
esac
exec "$real" -I -c "import json, os, sys
os.setgroups([]); os.setresgid(*[@UID@] * 3); os.setresuid(*[@UID@] * 3)
os.environ['PATH'] = os.environ['PATH'].replace('/assay/bin:', '')
os.environ['HOME'] = '@HOME@'
os.environ.update(json.loads(os.environ.pop('ASSAY_SETTINGS', '{}')))
os.execv(sys.argv[1], sys.argv[1:])" "$real" "$@"
