/** What a step changed, in a few lines. */

import { isObject, textOf } from "./json";
import type { Json, JsonObject, Moment } from "./types";

/** Kept by every method, and shown elsewhere. */
const ELSEWHERE = new Set(["calls", "schema_version", "question"]);
const TELLING = ["finding", "answer", "query", "question", "content", "predicate", "text", "what", "method", "name"];
const LONGEST = 200;

/** The fields that a checkpoint changed, keyed ones with their new or other entries only. */
export function fresh(moment: Moment, path: readonly Moment[]): JsonObject {
  const at = path.findIndex((each) => each.checkpoint === moment.checkpoint);
  const before = path.slice(0, Math.max(at, 0)).reverse();
  const kept = (name: string) => before.find((each) => name in each.changed)?.changed[name];
  return Object.fromEntries(Object.entries(moment.changed).map(([name, value]) => [name, newIn(value, kept(name))]));
}

function newIn(value: Json, before: Json | undefined): Json {
  if (!isObject(value) || !isObject(before)) return value;
  const entries = Object.entries(value).filter(([key, each]) => JSON.stringify(each) !== JSON.stringify(before[key]));
  return Object.fromEntries(entries);
}

/** An update in lines such as "notes 1: …". */
export function linesOf(update: JsonObject): string[] {
  return Object.entries(update)
    .filter(([name, value]) => !ELSEWHERE.has(name) && !isEmpty(value))
    .flatMap(([name, value]) => lines(name, value));
}

function lines(name: string, value: Json): string[] {
  if (!isObject(value) || words(value).length) return [`${name}: ${telling(value)}`];
  return Object.entries(value).map(([key, each]) => `${name} ${key}: ${telling(each)}`);
}

/** The words of a value that say most; a list of references says how many. */
function telling(value: Json): string {
  if (value === null) return "taken back";
  if (Array.isArray(value)) {
    return value.some((each) => isReference(textOf(each)))
      ? `${value.length} passages`
      : cut(value.map(telling).join("; "));
  }
  if (!isObject(value)) return cut(typeof value === "string" ? value : JSON.stringify(value));
  const told = words(value);
  return cut(told.length ? (told.find(Boolean) ?? "–") : JSON.stringify(value));
}

/** What stands in the fields that tell most, in their order. */
function words(value: JsonObject): string[] {
  return TELLING.map((key) => value[key]).filter((each) => typeof each === "string");
}

function cut(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}

function isEmpty(value: Json): boolean {
  return value === null || value === "" || value === false || (typeof value === "object" && !Object.keys(value).length);
}

/** Texts are kept beside the checkpoints by the SHA-256 of their content. */
export function isReference(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

/** Every reference anywhere in a value, once. */
export function referencesIn(value: Json): string[] {
  if (typeof value === "string") return isReference(value) ? [value] : [];
  const parts = typeof value === "object" && value !== null ? Object.values(value) : [];
  return [...new Set(parts.flatMap(referencesIn))];
}
