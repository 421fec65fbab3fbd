#!/usr/bin/env bash
# Does planning help? `sleuth eval` of one method without steps and of three with steps, with the model of a server.
#
#     benchmarks/methods_with_a_model.sh URL DATA OUT [LIMIT]
#
# URL is an OpenAI-compatible server, such as http://127.0.0.1:8000/v1; DATA as in three_sets.sh; LIMIT the questions of
# each set (40). If interrupted, rerun the same command. The reports in OUT have F1, calls, tokens and seconds.
set -euo pipefail

[[ $# -ge 3 ]] || { sed -n '2,8p' "$0" >&2 && exit 2; }
export SLEUTH_MODEL_URL=$1 SLEUTH_TIMEOUT=${SLEUTH_TIMEOUT:-900} SETS=${SETS:-musique 2wiki}
exec "$(dirname "$0")/three_sets.sh" "$2" "$3" --methods "${METHODS:-plain-rag,par-rag,agent,auto}" --limit "${4:-40}"
