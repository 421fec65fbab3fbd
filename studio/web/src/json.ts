import type { Json, JsonObject } from "./types";

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value if it is a string, else "". */
export function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}
