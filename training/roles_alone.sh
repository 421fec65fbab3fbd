#!/usr/bin/env bash
# Roles alone against mixed: what a role's own examples teach a model of its own, and what it learns among all others.
#
#     training/roles_alone.sh DATA BASE OUT [PERCENT]
#
# training/adapter.sh is run first, with the same arguments, and tunes the mixed model. Then each of three roles is tuned
# alone on its own share of the same examples, repeated to about the number of tokens of the mixed model. Each model is
# served in turn and replies to the prompts of questions that no model has learned from. OUT/alone/ROLE.json is the output
# of roles.check for the model of that role, OUT/alone/mixed.json for the mixed one. If interrupted, rerun the same command.
set -euo pipefail

data=$(realpath "$1") base=$(realpath "$2") out=$(realpath -m "$3") percent=${4:-100}
cd "$(dirname "$(realpath "$0")")/.." # `python -m training` finds the folder from there
roles=training.roles
alone=(drafter/draft reader/read planner/plan)

training/adapter.sh "$data" "$base" "$out" "$percent" >/dev/null
mkdir -p "$out/held-out" "$out/alone"

python - "$data" "$out/held-out" <<'PYTHON'
import gzip, json, sys
from hashlib import sha256
from pathlib import Path
from training.roles.tuning.batches import HELD_OUT

data, out = map(Path, sys.argv[1:])
for name in ("2wiki/train-like", "hotpot/train", "musique/train", "squad/dev"):
    lines = gzip.open(data / f"{name}.jsonl.gz", "rt", encoding="utf-8")
    kept = [line for line in lines if int(sha256(json.loads(line)["id"].encode()).hexdigest(), 16) % HELD_OUT == 0]
    (out / f"{name.replace('/', '-')}.jsonl").write_text("".join(kept), encoding="utf-8")
PYTHON
held_out=$out/held-out/played/all.jsonl
[ -f "$out/held-out/played/card.json" ] ||
    python -m $roles.data.examples "$out"/held-out/*.jsonl --methods plain-rag,par-rag --seed 11 --out "$out/held-out/played" >/dev/null

own() { grep -F "\"prompt\": \"$1\"" "$2"; }

check() { # name, adapter, file
    [ -f "$out/alone/$1.json" ] && return
    sleuth model serve --adapter "$2" >/dev/null
    python -m $roles.check "$3" >"$out/alone/$1.part" && mv "$out/alone/$1.part" "$out/alone/$1.json"
    sleuth model stop >/dev/null
}

for prompt in "${alone[@]}"; do
    role=${prompt%/*}
    own "$prompt" "$out/examples.jsonl" >"$out/alone/$role.jsonl"
    epochs=$(($(wc -c <"$out/examples.jsonl") / $(wc -c <"$out/alone/$role.jsonl")))
    [ -f "$out/alone/$role/report.json" ] ||
        python -m $roles.tuning.tune "$out/alone/$role.jsonl" --base "$base" --rate 1e-3 --epochs "$epochs" --out "$out/alone/$role" >/dev/null
    own "$prompt" "$held_out" >"$out/alone/$role-held-out.jsonl"
    check "$role" "$out/alone/$role" "$out/alone/$role-held-out.jsonl"
done
cat "$out"/alone/*-held-out.jsonl >"$out/alone/held-out.jsonl"
check mixed "$out/adapter" "$out/alone/held-out.jsonl"
