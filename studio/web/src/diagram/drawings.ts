/** Shapes and arrows for parts of a state. */

import { isObject, textOf } from "../json";
import type { Json, JsonObject } from "../types";
import type { Arrow, Shape } from "./diagram";

interface Drawing {
  shapes: Shape[];
  arrows: Arrow[];
}

/** RAS: entities and their relations. */
export function triples(facts: JsonObject, entities: JsonObject): Drawing {
  const edges = Object.entries(facts).filter((entry): entry is [string, JsonObject] => isObject(entry[1]));
  const used = new Set(edges.flatMap(([, fact]) => [textOf(fact.subject), textOf(fact.object)]));
  return {
    shapes: [...used].map((id) => ({ id, label: textOf(entities[id]) || id, look: "entity" })),
    arrows: edges.map(([key, fact]) => ({
      id: key,
      from: textOf(fact.subject),
      to: textOf(fact.object),
      label: textOf(fact.predicate),
      look: "",
    })),
  };
}

/** CRP-RAG: steps in layers below the question, each with its verification. */
export function reasoningGraph(nodes: JsonObject, verified: Json | undefined): Drawing {
  const checks = isObject(verified) ? verified : {};
  const steps = Object.entries(nodes).filter((entry): entry is [string, JsonObject] => isObject(entry[1]));
  return {
    shapes: steps.map(([key, step]) => ({ id: key, label: textOf(step.content), ...judged(checks[key]) })),
    arrows: steps.flatMap(([from, step]) => list(step.next).map((to) => ({ id: `${from} ${to}`, from, to, look: "" }))),
  };
}

function judged(check: Json | undefined): { look: string; remark?: string } {
  if (!isObject(check)) return { look: "step" };
  return check.sufficient === true
    ? { look: "step enough", remark: "enough is known" }
    : { look: "step lacking", remark: "not enough is known" };
}

function list(value: Json | undefined): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}
