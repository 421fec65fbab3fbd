/** State fields as they are edited: JSON texts by the field's name. */

import { isObject } from "./json";
import type { Json, JsonObject } from "./types";

export type Edits = Record<string, string>;

/** What is wrong with a text as JSON; empty if nothing is. */
export function problemIn(text = ""): string {
  try {
    JSON.parse(text);
    return "";
  } catch (error) {
    return (error as Error).message;
  }
}

/** The fields that really differ, as a fork takes them: keyed ones are merged, so a key that was taken out is null. */
export function changesOf(edits: Edits, before: JsonObject): JsonObject {
  const values = Object.entries(edits).map(([name, text]) => [name, JSON.parse(text) as Json] as const);
  const changed = values.filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name]));
  return Object.fromEntries(changed.map(([name, value]) => [name, withNulls(value, before[name])]));
}

function withNulls(value: Json, before: Json | undefined): Json {
  if (!isObject(value) || !isObject(before)) return value;
  const gone = Object.keys(before).filter((key) => !(key in value));
  return { ...value, ...Object.fromEntries(gone.map((key) => [key, null])) };
}
