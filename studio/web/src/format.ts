import type { NodeCost } from "./types";

const NUMBER = new Intl.NumberFormat("en");

export function number(value: number): string {
  return NUMBER.format(value);
}

export function count(number: number, noun: string): string {
  return `${NUMBER.format(number)} ${noun}${number === 1 ? "" : "s"}`;
}

export function seconds(value: number): string {
  return value < 100 ? `${value.toFixed(1)} s` : `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
}

/** The total time of model calls. */
export function modelTime(cost: NodeCost): string {
  return seconds(cost.model_seconds);
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

/** A moment with its date; within today the time is enough. */
export function when(iso: string, now = new Date()): string {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return "";
  const time = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  if (at.toDateString() === now.toDateString()) return `today, ${time}`;
  return `${at.toLocaleDateString([], { year: "numeric", month: "short", day: "numeric" })}, ${time}`;
}

const DAY = 86_400_000;

/** The day of a moment: "Today", "Yesterday", or its date. */
export function day(iso: string, now = new Date()): string {
  const at = new Date(iso);
  if (at.toDateString() === now.toDateString()) return "Today";
  if (at.toDateString() === new Date(now.getTime() - DAY).toDateString()) return "Yesterday";
  const year = at.getFullYear() === now.getFullYear() ? {} : ({ year: "numeric" } as const);
  return at.toLocaleDateString("en", { month: "long", day: "numeric", ...year });
}

/** The time of day to the second. */
export function clock(iso: string): string {
  const at = new Date(iso);
  return Number.isNaN(at.getTime())
    ? ""
    : at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}
