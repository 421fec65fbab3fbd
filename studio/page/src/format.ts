import type { NodeCost } from "./types";

const NUMBER = new Intl.NumberFormat("en");

export function count(number: number, noun: string): string {
  return `${NUMBER.format(number)} ${noun}${number === 1 ? "" : "s"}`;
}

export function seconds(value: number): string {
  return value < 100 ? `${value.toFixed(1)} s` : `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
}

export function spent(cost: NodeCost): string {
  const tokens = cost.prompt_tokens + cost.completion_tokens;
  return [count(cost.calls, "call"), count(tokens, "token"), seconds(cost.seconds)].join(" · ");
}

/** A name from the JSON in words. */
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
