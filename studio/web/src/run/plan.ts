/** Steps of a plan that a person rearranges. */

import { isObject, textOf } from "../json";
import type { Json, JsonObject } from "../types";

const NEW = -1;

/** The steps in another order, by their former positions; -1 is a new step. Each reference follows its step. */
export function rearranged(steps: readonly JsonObject[], order: readonly number[]): JsonObject[] {
  const numberOf = (before: number) => order.indexOf(before - 1) + 1;
  const renamed = (reference: string, before: number) =>
    before > steps.length ? reference : `#${numberOf(before) || "?"}`;
  return order.map((at) => {
    const step = steps[at];
    if (!step) return { question: "", needs: [] };
    const question = textOf(step.question).replace(/#(\d+)/g, (all, digits) => renamed(all, Number(digits)));
    return { ...step, question, needs: needsOf(step).map(numberOf).filter(Boolean) };
  });
}

/** The positions of steps after one was moved up (-1) or down (1). */
export function moved(length: number, at: number, by: number): number[] {
  const order = [...Array(length).keys()];
  order.splice(at + by, 0, ...order.splice(at, 1));
  return order;
}

/** The positions of steps without one of them. */
export function without(length: number, at: number): number[] {
  return [...Array(length).keys()].filter((each) => each !== at);
}

/** The positions of steps with a new one at the end. */
export function extended(length: number): number[] {
  return [...Array(length).keys(), NEW];
}

/** What is wrong with the references of a step; empty if each names an earlier step. */
export function problemOf(question: string, number: number): string {
  if (question.includes("#?")) return "The step that #? stood for is removed. Write what to look for instead.";
  const later = referencesIn(question).find((each) => each >= number || each < 1);
  return later === undefined ? "" : `#${later} is not an earlier step. Move this step down, or name another one.`;
}

/** The steps as the server takes them: each needs the earlier steps that it names, and those it needed before. */
export function sent(steps: readonly JsonObject[]): JsonObject[] {
  return steps.map((step, at) => {
    const needs = [...needsOf(step), ...referencesIn(textOf(step.question))].filter((each) => each <= at);
    return { ...step, needs: [...new Set(needs)] };
  });
}

function needsOf({ needs }: JsonObject): number[] {
  return Array.isArray(needs) ? needs.map(Number) : [];
}

function referencesIn(question: string): number[] {
  return [...question.matchAll(/#(\d+)/g)].map(([, digits]) => Number(digits));
}

/** The plan in a state, whose steps have their numbers as keys, as a list; null if it is none. */
export function listedPlan(plan: Json | undefined): JsonObject[] | null {
  const steps = isObject(plan) ? Object.values(plan).filter(isObject) : [];
  return steps.length > 0 && steps.every(({ question }) => typeof question === "string") ? steps : null;
}

/** A list of steps as a plan in a state; a step with another question is planned as such. */
export function storedPlan(steps: readonly JsonObject[], before: readonly JsonObject[]): JsonObject {
  const example = before.at(-1) ?? {};
  const known = new Set(before.map(({ question }) => question));
  const stored = sent(steps).map((step) => ({
    ...example,
    ...step,
    needs: needsOf(step).map(String),
    ...("planned" in example && !known.has(textOf(step.question)) && { planned: textOf(step.question) }),
  }));
  return Object.fromEntries(stored.map((step, at) => [String(at + 1), step]));
}
