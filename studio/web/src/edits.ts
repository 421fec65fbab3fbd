/** Edited state fields: JSON texts by field name. */

import { isObject } from "./json";
import type { Json, JsonObject } from "./types";

export type Edits = Record<string, string>;

/** The syntax error of a JSON text; empty if there is none. */
export function problemIn(text = ""): string {
  try {
    JSON.parse(text);
    return "";
  } catch (error) {
    return (error as Error).message;
  }
}

/** The changed fields as a fork takes them: keyed fields are merged, so a removed key is null. */
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
