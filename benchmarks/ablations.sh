#!/usr/bin/env bash
# The ablations of all five papers under simulation, as published: 100 questions each of 2Wiki and MuSiQue.
#
#     benchmarks/ablations.sh DATA OUT [OPTION...]
#
# As three_sets.sh, with vectors.
set -euo pipefail

here=$(dirname "$(realpath "$0")")
data=$1 out=$2
shift 2
export SETS=${SETS:-2wiki musique} SLEUTH_EMBEDDER=${SLEUTH_EMBEDDER:-all-MiniLM-L6-v2}
exec "$here/three_sets.sh" "$data" "$out" --methods par-rag --ablations par-rag,crp-rag,retro-rag,ras,hybrid-rag --profile paper \
    --limit 100 --simulate "$here/simulation.toml" "$@"
