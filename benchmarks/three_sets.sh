#!/usr/bin/env bash
# `sleuth eval` on the questions of 2Wiki, HotpotQA and MuSiQue, each over its own collection, with a report for each.
#
#     benchmarks/three_sets.sh DATA OUT OPTION...
#
# DATA has the folders 2wiki, hotpot and musique, each with corpus.jsonl.gz and questions.jsonl.gz; below OUT each gets a
# collection of its own and a report. OPTIONs go to `sleuth eval`, as in `--methods plain-rag,par-rag --limit 100`.
# If interrupted, rerun the same command. SETS are the sets to run (default: all), AT_ONCE the number of them at a time
# (default: processors), EVAL the command in place of `sleuth eval`, as `python -m training.simulation`. There are no vectors unless SLEUTH_EMBEDDER is set.
set -euo pipefail

data=$(realpath "$1") out=$(realpath -m "$2")
shift 2
at_once=${AT_ONCE:-$(nproc)} # asked before OMP_NUM_THREADS is set, which nproc heeds
export SLEUTH_EMBEDDER=${SLEUTH_EMBEDDER:-none} OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}

evaluate() {
    local set=$1
    shift
    export SLEUTH_HOME=$out/$set/home
    mkdir -p "$SLEUTH_HOME"
    { sleuth ingest "$data/$set/corpus.jsonl.gz" &&
        ${EVAL:-sleuth eval} "$data/$set/questions.jsonl.gz" "$@" --out "$out/$set/report"; } >"$out/$set/log" 2>&1 ||
        { echo "$set ended early, see $out/$set/log" && return 1; }
    echo "$set: $out/$set/report/report.html"
}
export -f evaluate
export data out

began=$SECONDS
printf '%s\n' ${SETS:-hotpot musique 2wiki} | xargs -P "$at_once" -I{} bash -c 'evaluate "$@"' evaluate {} "$@"
echo "$((SECONDS - began)) seconds"
