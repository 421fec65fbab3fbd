/** The toggle "for research": settings of experiments and internal names are shown only while it is on. */

import { useSyncExternalStore } from "react";
import type { Field } from "./schema";

const KEY = "sleuth-research";
const listeners = new Set<() => void>();

/** The toggle, which this browser remembers, and the function that sets it. */
export function useResearch(): [boolean, (on: boolean) => void] {
  const on = useSyncExternalStore(subscribe, () => localStorage.getItem(KEY) !== null);
  return [on, setResearch];
}

function setResearch(on: boolean): void {
  if (on) localStorage.setItem(KEY, "on");
  else localStorage.removeItem(KEY);
  for (const changed of listeners) changed();
}

function subscribe(changed: () => void): () => void {
  listeners.add(changed);
  return () => {
    listeners.delete(changed);
  };
}

/** True for a switch between a method and its paper, a fitted value, and what only a reader of the code understands. */
export function isForResearch({ kind, description }: Pick<Field, "kind" | "description">): boolean {
  return (
    kind === "json" ||
    /\(ablation\)|\(paper: (?:true|keep)\)|\bours:|\bfitted\b|\b[A-Z]{5,}\b|P\(|\ba\/b\b/.test(description)
  );
}

/** A description without its remarks on the paper. */
export function plainly(description: string): string {
  return description.replace(/\s*\((?:paper|ablation)[^)]*\)/g, "");
}
