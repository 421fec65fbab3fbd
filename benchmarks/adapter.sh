#!/usr/bin/env bash
# An adapter for all roles, from training files to held-out figures, by one command.
#
#     benchmarks/adapter.sh DATA BASE OUT [PERCENT]
#
# DATA has the training files of 2wiki, hotpot, musique, squad and scifact; BASE is the folder of the model to tune, as
# SLEUTH_HOME/models/smollm2-135m-instruct, which `sleuth model serve --adapter none` leaves there. OUT gets the examples
# and, in its folder adapter, what `sleuth model serve --adapter` takes; report.json in that tells the losses, and what is
# right of held-out replies before and after. PERCENT of the questions are played and learned from (100: five million
# tokens, four hours on two cores). Killed, the same command goes on.
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
        python -m $roles.examples "${questions[@]}" --limit $((plays * percent / 100)) --out "$out/$name" "$@" >/dev/null
}
play all 4900 --triples "$data/musique/openie-train.jsonl.gz" \
    --claims "$data"/scifact/claims.jsonl.gz "$data"/scifact/corpus.jsonl.gz
play reading-1 2700 --methods plain-rag,par-rag --seed 1
play reading-2 2700 --methods plain-rag,par-rag --seed 2
python -m $roles.mix "${played[@]}" --tokens $((5000000 * percent / 100)) --out "$out/examples.jsonl"
[ -f "$out/adapter/report.json" ] ||
    python -m $roles.tune "$out/examples.jsonl" --base "$base" --rate 1e-3 --out "$out/adapter"
