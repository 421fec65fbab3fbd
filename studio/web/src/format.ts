import type { NodeCost } from "./types";

const NUMBER = new Intl.NumberFormat("en");

export function count(number: number, noun: string): string {
  return `${NUMBER.format(number)} ${noun}${number === 1 ? "" : "s"}`;
}

export function seconds(value: number): string {
  return value < 100 ? `${value.toFixed(1)} s` : `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
}

/** The total time of model calls. */
export function modelTime(cost: NodeCost): string {
  return seconds(cost.model_seconds ?? cost.seconds ?? 0);
}

/** Calls, tokens, and the duration of a run or else the time of its model calls. */
export function spent(cost: NodeCost, took?: number | null): string {
  const tokens = cost.prompt_tokens + cost.completion_tokens;
  const time = typeof took === "number" ? seconds(took) : `${modelTime(cost)} model time`;
  return [count(cost.calls, "call"), count(tokens, "token"), time].join(" · ");
}

/** A name from the JSON with spaces. */
export function words(name: string): string {
  return name.replaceAll("_", " ");
}

export function when(iso: string): string {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return "";
  const today = at.toDateString() === new Date().toDateString();
  return today
    ? at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" })
    : at.toLocaleDateString([], { year: "numeric", month: "short", day: "numeric" });
}
