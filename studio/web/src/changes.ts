/** The changes of a step as lines of text. */

import { isObject, textOf } from "./json";
import type { Json, JsonObject, Moment } from "./types";

/** Fields of every method that are shown elsewhere. */
const HIDDEN = new Set(["calls", "searches", "schema_version", "question"]);
const MAIN_FIELDS = [
  "finding",
  "answer",
  "query",
  "question",
  "content",
  "predicate",
  "text",
  "what",
  "method",
  "name",
];
const LONGEST = 200;

/** The fields that a checkpoint changed; keyed fields with new or changed entries only, growing lists with new items. */
export function fresh(moment: Moment, path: readonly Moment[]): JsonObject {
  const at = path.findIndex((each) => each.checkpoint === moment.checkpoint);
  const before = path.slice(0, Math.max(at, 0)).reverse();
  const kept = (name: string) => before.find((each) => name in each.changed)?.changed[name];
  return Object.fromEntries(Object.entries(moment.changed).map(([name, value]) => [name, newIn(value, kept(name))]));
}

function newIn(value: Json, before: Json | undefined): Json {
  if (Array.isArray(value) && Array.isArray(before)) {
    return before.every((each, at) => JSON.stringify(each) === JSON.stringify(value[at]))
      ? value.slice(before.length)
      : value;
  }
  if (!isObject(value) || !isObject(before)) return value;
  const entries = Object.entries(value).filter(([key, each]) => JSON.stringify(each) !== JSON.stringify(before[key]));
  return Object.fromEntries(entries);
}

/** An update as lines such as "notes 1: …". */
export function linesOf(update: JsonObject): string[] {
  return Object.entries(update)
    .filter(([name, value]) => !HIDDEN.has(name) && !isEmpty(value))
    .flatMap(([name, value]) => lines(name, value));
}

function lines(name: string, value: Json): string[] {
  if (!isObject(value) || mainTexts(value).length) return [`${name}: ${summary(value)}`];
  return Object.entries(value).map(([key, each]) => `${name} ${key}: ${summary(each)}`);
}

/** A short text for a value; the number of passages for a list of references. */
function summary(value: Json): string {
  if (value === null) return "removed";
  if (Array.isArray(value)) {
    return value.some((each) => isReference(textOf(each)))
      ? `${value.length} passages`
      : cut(value.map(summary).join("; "));
  }
  if (!isObject(value)) return cut(typeof value === "string" ? value : JSON.stringify(value));
  const texts = mainTexts(value);
  const fields = () => Object.entries(value).map(([key, each]) => `${key} ${summary(each)}`);
  return cut(texts.length ? (texts.find(Boolean) ?? "–") : fields().join(", "));
}

/** The texts of the main fields, in their order. */
function mainTexts(value: JsonObject): string[] {
  return MAIN_FIELDS.map((key) => value[key]).filter((each) => typeof each === "string");
}

function cut(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}

function isEmpty(value: Json): boolean {
  return value === null || value === "" || value === false || (typeof value === "object" && !Object.keys(value).length);
}

/** True for a reference to an archived text: the SHA-256 of its content. */
export function isReference(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

/** All references in a value, each once. */
export function referencesIn(value: Json): string[] {
  if (typeof value === "string") return isReference(value) ? [value] : [];
  const parts = typeof value === "object" && value !== null ? Object.values(value) : [];
  return [...new Set(parts.flatMap(referencesIn))];
}
