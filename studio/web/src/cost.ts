import { isObject } from "./json";
import type { CallRecord, Cost, JsonObject } from "./types";

export type Calls = Record<string, CallRecord>;

/** The model calls in a state or an update; null marks a removed one. */
export function callsIn(state: JsonObject): Calls {
  const calls = isObject(state.calls) ? Object.entries(state.calls).filter(([, call]) => call !== null) : [];
  return Object.fromEntries(calls) as unknown as Calls;
}

/** The cost of calls, in total and by node. */
export function costOf(calls: Calls): Cost {
  const cost = { ...nothing(), cached_tokens: 0, nodes: {} as Record<string, ReturnType<typeof nothing>> };
  for (const call of Object.values(calls)) {
    cost.cached_tokens += call.cached_tokens;
    const node = (cost.nodes[call.node] ??= nothing());
    for (const part of [cost, node]) {
      part.calls += 1;
      part.prompt_tokens += call.prompt_tokens;
      part.completion_tokens += call.completion_tokens;
      part.model_seconds += call.seconds;
    }
  }
  return cost;
}

function nothing() {
  return { calls: 0, prompt_tokens: 0, completion_tokens: 0, model_seconds: 0 };
}
