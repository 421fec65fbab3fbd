#!/usr/bin/env bash
# Every method and baseline under simulation: 200 questions each of 2Wiki, HotpotQA and MuSiQue, with a report for each.
#
#     benchmarks/full_simulation.sh DATA OUT [OPTION...]
#
# As three_sets.sh; OPTIONs go to `sleuth eval`, and a later one wins, as in `--methods par-rag --limit 10`.
set -euo pipefail

here=$(dirname "$(realpath "$0")")
data=$1 out=$2
shift 2
exec "$here/three_sets.sh" "$data" "$out" --methods all --limit 200 --simulate "$here/simulation.toml" "$@"
