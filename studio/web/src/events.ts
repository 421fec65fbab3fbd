/** The live state of a run, reduced from its events. */

import { callsIn, type Calls } from "./cost";
import type { ServerEvent } from "./sse";
import type { Answer, DeltaEvent, JsonObject, StepEvent } from "./types";

export interface LiveStep {
  node: string;
  method: string;
  thread: string;
  state: "running" | "done" | "interrupted";
  update: JsonObject;
  /** The run was resumed or forked before this step. */
  resumed: boolean;
}

export interface Draft {
  node: string;
  thread: string;
  text: string;
}

export type End = { kind: "answer"; answer: Answer } | { kind: "error"; message: string } | { kind: "stopped" };

export interface Live {
  lastId: number;
  steps: LiveStep[];
  /** Replies that are being written, by call. */
  drafts: Record<string, Draft>;
  calls: Calls;
  end: End | null;
}

export const NOTHING: Live = { lastId: 0, steps: [], drafts: {}, calls: {}, end: null };

/** The next state; a repeated event changes nothing. */
export function reduce(live: Live, event: ServerEvent): Live {
  const id = Number(event.id);
  if (event.id && id <= live.lastId) return live;
  return apply(event.id ? { ...live, lastId: id } : live, event);
}

function apply(live: Live, event: ServerEvent): Live {
  const data: unknown = JSON.parse(event.data);
  switch (event.name) {
    case "step":
      return step(live, data as StepEvent);
    case "delta":
      return delta(live, data as DeltaEvent);
    case "reset":
      return { ...live, drafts: without(live.drafts, (data as { call: string }).call) };
    case "answer":
      return ended(live, { kind: "answer", answer: data as Answer });
    case "error":
      return ended(live, { kind: "error", message: (data as { message: string }).message });
    case "stopped":
      return ended(live, { kind: "stopped" });
    case "resumed":
      return resumed(live);
    default:
      return live;
  }
}

function step(live: Live, { node, method, thread, state, update }: StepEvent): Live {
  const resumed = live.end !== null;
  if (state === "started") {
    const fresh: LiveStep = { node, method, thread, state: "running", update: {}, resumed };
    return { ...live, steps: [...live.steps, fresh], end: null };
  }
  const done: LiveStep = { node, method, thread, state: "done", update, resumed };
  const at = live.steps.findIndex((each) => each.state !== "done" && each.node === node && each.thread === thread);
  const steps = at < 0 ? [...live.steps, done] : live.steps.with(at, done);
  const others = Object.entries(live.drafts).filter(([, draft]) => draft.node !== node || draft.thread !== thread);
  const drafts = Object.fromEntries(others);
  return { ...live, steps, drafts, calls: { ...live.calls, ...callsIn(update) }, end: null };
}

function delta(live: Live, { call, node, thread, text }: DeltaEvent): Live {
  const whole = (live.drafts[call]?.text ?? "") + text;
  return { ...live, drafts: { ...live.drafts, [call]: { node, thread, text: whole } } };
}

function ended(live: Live, end: End): Live {
  const steps = live.steps.map((each) =>
    each.state === "running" ? { ...each, state: "interrupted" as const } : each,
  );
  return { ...live, steps, drafts: {}, end };
}

/** Mark interrupted steps as running again; the server sends the start of a step only once. */
function resumed(live: Live): Live {
  const steps = live.steps.map((each) =>
    each.state === "interrupted" ? { ...each, state: "running" as const } : each,
  );
  return { ...live, steps, end: null };
}

function without<T>(all: Record<string, T>, key: string): Record<string, T> {
  return Object.fromEntries(Object.entries(all).filter(([each]) => each !== key));
}
