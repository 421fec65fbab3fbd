/** Drawing of the findings of a run: the triples of RAS or the reasoning graph of CRP-RAG. */

import { useMemo } from "react";
import { isObject } from "../json";
import { Diagram } from "../diagram/diagram";
import { reasoningGraph, triples } from "../diagram/drawings";
import type { JsonObject } from "../types";

export function KnowledgeGraph({ state }: { state: JsonObject }) {
  const drawing = useMemo(() => drawingOf(state), [state]);
  if (!drawing) return null;
  return (
    <section aria-label={drawing.title}>
      <h3>{drawing.title}</h3>
      <Diagram label={drawing.title} {...drawing} />
    </section>
  );
}

function drawingOf(state: JsonObject) {
  const { facts, entities, nodes } = state;
  if (isObject(facts) && isObject(entities) && Object.keys(facts).length) {
    return { title: "Triples found so far", ...triples(facts, entities), direction: "LR" as const };
  }
  if (isObject(nodes) && Object.keys(nodes).length) {
    return { title: "Reasoning graph", ...reasoningGraph(nodes, state.verified), direction: "TB" as const };
  }
  return null;
}
