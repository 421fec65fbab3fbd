#!/usr/bin/env bash
# Every method and baseline under simulation: 200 questions each of 2Wiki, HotpotQA and MuSiQue, with a report for each.
#
#     benchmarks/full_simulation.sh DATA OUT [OPTION...]
#
# DATA has the folders 2wiki, hotpot and musique, each with corpus.jsonl.gz and questions.jsonl.gz; below OUT each gets a
# collection of its own and a report. Killed at any moment, the same command goes on. As many sets at a time as there
# are processors; without vectors unless SLEUTH_EMBEDDER says which. OPTIONs go to `sleuth eval`; a later one wins, as
# in `--methods par-rag --limit 10`.
set -euo pipefail

data=$(realpath "$1") out=$(realpath -m "$2")
shift 2
simulation=$(realpath "$(dirname "$0")/simulation.toml")
at_once=$(nproc) # asked before OMP_NUM_THREADS is set, which it heeds
export SLEUTH_EMBEDDER=${SLEUTH_EMBEDDER:-none} OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}

evaluate() {
    local set=$1
    shift
    export SLEUTH_HOME=$out/$set/home
    mkdir -p "$SLEUTH_HOME"
    { sleuth ingest "$data/$set/corpus.jsonl.gz" &&
        sleuth eval "$data/$set/questions.jsonl.gz" --methods all --limit 200 --simulate "$simulation" "$@" \
            --out "$out/$set/report"; } >"$out/$set/log" 2>&1 ||
        { echo "$set ended early, see $out/$set/log" && return 1; }
    echo "$set: $out/$set/report/report.html"
}
export -f evaluate
export data out simulation

began=$SECONDS
printf '%s\n' hotpot musique 2wiki | xargs -P "$at_once" -I{} bash -c 'evaluate "$@"' evaluate {} "$@"
echo "$((SECONDS - began)) seconds"
