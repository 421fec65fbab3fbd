#!/usr/bin/env bash
# An adapter for all roles, from training files to held-out figures, by one command.
#
#     training/adapter.sh DATA BASE OUT [PERCENT]
#
# DATA has the training files of 2wiki, hotpot, musique, squad and scifact, and train/ with further ones; BASE is the folder
# of the model to tune, as SLEUTH_HOME/models/tiny-base, which `sleuth model serve --adapter none` leaves there.
# OUT gets the examples, and OUT/adapter the adapter for `sleuth model serve --adapter`, with the losses and the scores of
# held-out replies before and after in its report.json. OUT/worlds are synthetic worlds, made if missing. PERCENT is the
# share of the questions (100: seven million tokens, six hours on two cores). If interrupted, rerun the same command.
set -euo pipefail

data=$(realpath "$1") base=$(realpath "$2") out=$(realpath -m "$3") percent=${4:-100}
cd "$(dirname "$(realpath "$0")")/.." # `python -m training` finds the folder from there
roles=training.roles
share() { echo $((($1 * percent + 99) / 100)); }

played=()
play() {
    local name=$1 plays=$2
    shift 2
    played+=("$out/$name/all.jsonl")
    [ -f "$out/$name/card.json" ] ||
        python -m $roles.data.examples "$@" --limit "$(share "$plays")" --out "$out/$name" >/dev/null
}
tune() {
    local name=$1 examples=$2
    shift 2
    [ -f "$out/$name/report.json" ] || python -m $roles.tuning.tune "$out/$examples" --base "$base" --out "$out/$name" "$@"
}
mix() { python -m $roles.data.mix "${played[@]}" --tokens "$(share "$2")" --out "$out/$1"; }

# All roles, and much reading, on few questions
questions=("$data"/{2wiki/train-like,hotpot/train,musique/train,squad/dev}.jsonl.gz)
play all 4900 "${questions[@]}" --triples "$data/musique/openie-train.jsonl.gz" \
    --claims "$data"/scifact/claims.jsonl.gz "$data"/scifact/corpus.jsonl.gz
play reading-1 2700 "${questions[@]}" --methods plain-rag,par-rag --seed 1
play reading-2 2700 "${questions[@]}" --methods plain-rag,par-rag --seed 2
mix examples-1.jsonl 5000000
tune first examples-1.jsonl --rate 1e-3

# Reading and refusing, on many more questions and on synthetic worlds
[ -d "$out/worlds" ] || python -m training.worlds --seed 11 --worlds "$(share 120)" --out "$out/worlds" >/dev/null
complete=$out/worlds/complete/training.jsonl more=$data/train
played=()
play single 2500 "$more"/{squad2,nq}.jsonl.gz --methods plain-rag --seed 21
play hops 2500 "$more"/{hotpot,2wiki,musique}.jsonl.gz "$data/musique/train.jsonl.gz" --methods plain-rag,par-rag --seed 22
play worlds 1800 "$complete" "$out/worlds/gaps/training.jsonl" --methods plain-rag,par-rag --seed 23
play yes-no 300 "$more/boolq.jsonl.gz" --methods plain-rag --seed 24
play others 500 "$more/2wiki.jsonl.gz" "$data/2wiki/train-like.jsonl.gz" "$complete" --methods crp-rag,retro-rag,ras --seed 25
mix examples-2.jsonl 2400000
tune adapter examples-2.jsonl --start "$out/first" --rate 7e-4
