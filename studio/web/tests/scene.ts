import type { JsonObject, Moment } from "../src/types";

/** A checkpoint; `at` orders them. */
export function moment(checkpoint: string, parent: string, more: Partial<Moment> = {}): Moment {
  return { checkpoint, parent, step: 0, node: [checkpoint], next: [], at: "", changed: {}, source: "loop", ...more };
}

/** a, b, c; and from b a state changed by hand, d, with e after it. Newest first, as the server gives them. */
export const FORKED: Moment[] = [
  moment("e", "d", { at: "5", node: ["draft"] }),
  moment("d", "b", { at: "4", node: ["plan"], next: ["draft"], changed: { plan: { 1: "other" } }, source: "update" }),
  moment("c", "b", { at: "3", node: ["draft"] }),
  moment("b", "a", { at: "2", node: ["plan"], next: ["draft"], changed: { plan: { 1: "one", 2: "two" } } }),
  moment("a", "", { at: "1", node: [], next: ["plan"] }),
];

export function call(node: string, more: JsonObject = {}): JsonObject {
  return { role: node, node, prompt_tokens: 100, cached_tokens: 20, completion_tokens: 10, seconds: 0.5, ...more };
}
