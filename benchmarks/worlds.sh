#!/usr/bin/env bash
# `sleuth eval` on the frozen test split of the synthetic worlds, with a report for each edition.
#
#     benchmarks/worlds.sh OUT OPTION...
#
# The split is generated below OUT and checked against worlds.sha256. `complete` has every fact; `gaps` lacks the telling
# sentences of half of its questions. OPTIONs go to `sleuth eval`, as in `--methods plain-rag,par-rag --limit 100`; the
# rest is as in three_sets.sh.
set -euo pipefail

here=$(dirname "$(realpath "$0")") out=$(realpath -m "$1")
shift
(cd "$here/.." && python -m training.worlds --split test --seed 1 --worlds 12 --out "$out/data")
(cd "$out/data" && sha256sum --check --quiet "$here/worlds.sha256")
gzip --keep --force --no-name "$out"/data/*/{corpus,questions}.jsonl
SETS=${SETS:-complete gaps} exec "$here/three_sets.sh" "$out/data" "$out" "$@"
