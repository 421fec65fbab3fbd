#!/usr/bin/env bash
# Everything trained that comes with the package, from training files to held-out figures, by one command.
#
#     training/artefacts.sh DATA BASE OUT [PERCENT]
#
# DATA, BASE and PERCENT are as in adapter.sh. OUT gets
#
#     checker/, checker.json    the evidence checker, and its figures       -> tools/evidence_checker/model
#     ranker.npz, ranker.json   graph search's ranker, cross-validated      -> tools/search/ranking.npz
#     svm.npz, svm.json         the question classifier, cross-validated    -> graphs/methods/hybrid_rag/question_attributes
#     adapter/                  the adapter of tiny                         -> studio/model_server/tiny
#
# PERCENT=100 takes about eleven hours on two cores. If interrupted, rerun the same command.
set -euo pipefail

data=$(realpath "$1") base=$(realpath "$2") out=$(realpath -m "$3") percent=${4:-100}
cd "$(dirname "$(realpath "$0")")/.." # `python -m training` finds the folder from there
checker=training.evidence_checker
share() { echo $((($1 * percent + 99) / 100)); }
world() { [ -d "$1" ] || python -m training.worlds --out "$@" >/dev/null; }
once() { # FILE COMMAND...: run the command unless the file is there, which it then has printed
    [ -s "$1" ] || { "${@:2}" >"$1.new" && mv "$1.new" "$1"; }
}

mkdir -p "$out"
world "$out/worlds" --seed 11 --worlds "$(share 120)"
world "$out/test-worlds" --split test --seed 1 --worlds "$(share 12)"

learn=(python -m $checker.train "$data" --worlds "$out/worlds" --threads "${THREADS:-1}")
once "$out/checker-1.json" "${learn[@]}" --out "$out/checker-1" --tokens "$(share 12000000)"
once "$out/checker-2.json" "${learn[@]}" --start "$out/checker-1" --out "$out/checker-2" --tokens "$(share 16000000)"
once "$out/checker-export.json" python -m $checker.export "$data" --worlds "$out/worlds" --run "$out/checker-2" --out "$out/checker"
once "$out/checker.json" python -m $checker.check "$data" --worlds "$out/test-worlds" --checker "$out/checker"

once "$out/ranker.json" python -m training.ranker "$data"/{2wiki/train-like,hotpot/train,musique/train}.jsonl.gz --out "$out/ranker.npz"
once "$out/svm.json" env SLEUTH_HOME="$out/home" python -m training.attributes --out "$out/svm.npz"

training/adapter.sh "$data" "$base" "$out" "$percent"
