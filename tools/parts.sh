# shellcheck shell=bash
# Sourced by tools/test: parts with time limits, whose outcomes a summary lists.

# shellcheck source=tools/environment.sh
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

summary=() status=0 percent=100

# Run the command after the name $1 and keep its outcome for the summary.
part() {
    local name=$1 begin=$SECONDS outcome=passed code=0
    shift
    say "$name"
    "$@" </dev/null || code=$?
    case $code in
        0) ;;
        124 | 137) outcome="FAILED: not finished within its time limit" ;;
        *) outcome="FAILED with exit code $code" ;;
    esac
    ((code == 0)) || status=1
    summary+=("$(printf '%-24s %4d s  %s' "$name" $((SECONDS - begin)) "$outcome")")
}

# Multiply all time limits by the time to compile a kernel over that of a reference machine.
scale_limits() {
    percent=$(python "$root/tools/compile_time") || fail "tools/compile_time failed"
    say "compiling takes $percent % of the reference time"
    percent=$((percent > 100 ? percent : 100))
    say "time limits are multiplied by $((percent / 100)).$(printf %02d $((percent % 100)))"
}

# Run pytest with the options after the time limits $1 of all tests and $2 of one, in seconds. pytest stops
# by itself and prints the failures (tests/support/reporting.py); `timeout` ends processes that hang elsewhere.
# The words before -- are a launcher: limited 240 120 mpirun -n 2 -- tests/mpi
limited() {
    local limit=$(($1 * percent / 100)) each=$(($2 * percent / 100)) launcher=()
    shift 2
    while [[ $1 != -- ]]; do launcher+=("$1") && shift; done
    timeout -k 10 $((limit + 120)) "${launcher[@]}" python -m pytest "${@:2}" -rfEs --durations=10 --durations-min=1 \
        --deadline="$limit" --timeout="$each" --timeout-method=thread
}

# Wait for the process $1, print the file $2 that it wrote, and return its exit code.
result_of() {
    local code=0
    wait "$1" || code=$?
    cat "$2"
    return "$code"
}

# Print the summary and exit.
finish() {
    printf '%s\n' "${summary[@]}" "$(printf '%-24s %4d s' all "$SECONDS")"
    exit "$status"
}
