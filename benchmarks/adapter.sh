#!/usr/bin/env bash
# An adapter for all roles, from training files to held-out figures, by one command.
#
#     benchmarks/adapter.sh DATA BASE OUT [PERCENT]
#
# DATA has the training files of 2wiki, hotpot, musique, squad and scifact; BASE is the folder of the model to tune, as
# SLEUTH_HOME/models/smollm2-135m-instruct, which `sleuth model serve --adapter none` leaves there. OUT gets the examples,
# and OUT/adapter the adapter for `sleuth model serve --adapter`, with the losses and the scores of held-out replies before
# and after in its report.json. PERCENT is the share of the questions (100: five million tokens, four hours on two cores).
# If interrupted, rerun the same command.
set -euo pipefail

data=$1 base=$2 out=$3 percent=${4:-100}
roles=sleuth.studio.training.roles
questions=("$data"/{2wiki/train-like,hotpot/train,musique/train,squad/dev}.jsonl.gz)

played=()
play() {
    local name=$1 plays=$2
    shift 2
    played+=("$out/$name/all.jsonl")
    [ -f "$out/$name/card.json" ] ||
        python -m $roles.data.examples "${questions[@]}" --limit $((plays * percent / 100)) --out "$out/$name" "$@" >/dev/null
}
play all 4900 --triples "$data/musique/openie-train.jsonl.gz" \
    --claims "$data"/scifact/claims.jsonl.gz "$data"/scifact/corpus.jsonl.gz
play reading-1 2700 --methods plain-rag,par-rag --seed 1
play reading-2 2700 --methods plain-rag,par-rag --seed 2
python -m $roles.data.mix "${played[@]}" --tokens $((5000000 * percent / 100)) --out "$out/examples.jsonl"
[ -f "$out/adapter/report.json" ] ||
    python -m $roles.tuning.tune "$out/examples.jsonl" --base "$base" --rate 1e-3 --out "$out/adapter"
