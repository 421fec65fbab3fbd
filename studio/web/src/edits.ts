/** Edited state fields by name. */

import { isObject } from "./json";
import type { Json, JsonObject } from "./types";

/** The changed fields as a fork takes them: keyed fields are merged, so a removed key is null. */
export function changesOf(edits: JsonObject, before: JsonObject): JsonObject {
  const changed = Object.entries(edits).filter(([name, value]) => isChanged(value, before[name]));
  return Object.fromEntries(changed.map(([name, value]) => [name, withNulls(value, before[name])]));
}

/** True if a value differs from the one before. */
export function isChanged(value: Json | undefined, before: Json | undefined): boolean {
  return value !== undefined && JSON.stringify(value) !== JSON.stringify(before);
}

function withNulls(value: Json, before: Json | undefined): Json {
  if (!isObject(value) || !isObject(before)) return value;
  const gone = Object.keys(before).filter((key) => !(key in value));
  return { ...value, ...Object.fromEntries(gone.map((key) => [key, null])) };
}
