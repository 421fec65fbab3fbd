/** Conversion of a method's settings between JSON schema and form. */

import { isObject, textOf } from "./json";
import type { Json, JsonObject } from "./types";

export type Kind = "whole" | "number" | "boolean" | "choice" | "text" | "json";

export interface Field {
  name: string;
  kind: Kind;
  description: string;
  choices: string[];
  minimum: number | undefined;
  maximum: number | undefined;
  fallback: Json;
}

const KINDS: Record<string, Kind> = { integer: "whole", number: "number", boolean: "boolean", string: "text" };

export function fieldsOf(schema: JsonObject): Field[] {
  const properties = isObject(schema.properties) ? schema.properties : {};
  const definitions = isObject(schema.$defs) ? schema.$defs : {};
  return Object.entries(properties)
    .filter((entry): entry is [string, JsonObject] => isObject(entry[1]))
    .map(([name, property]) => field(name, property, definitions));
}

function field(name: string, property: JsonObject, definitions: JsonObject): Field {
  const type = resolved(property, definitions);
  const choices = Array.isArray(type.enum) ? type.enum.filter((each) => typeof each === "string") : [];
  return {
    name,
    kind: choices.length ? "choice" : (KINDS[textOf(type.type)] ?? "json"),
    description: textOf(property.description),
    choices,
    minimum: number(type.minimum) ?? number(type.exclusiveMinimum),
    maximum: number(type.maximum) ?? number(type.exclusiveMaximum),
    fallback: property.default ?? null,
  };
}

/** The type of a property with references resolved and without null. */
function resolved(property: JsonObject, definitions: JsonObject): JsonObject {
  const options = Array.isArray(property.anyOf) ? property.anyOf.filter(isObject) : [];
  const option = options.find((each) => each.type !== "null");
  if (option) return resolved({ ...option }, definitions);
  const target = definitions[textOf(property.$ref).split("/").pop() ?? ""];
  return isObject(target) ? target : property;
}

function number(value: Json | undefined): number | undefined {
  return typeof value === "number" ? value : undefined;
}

/** The text of a default in the form. */
export function shown(value: Json): string {
  if (value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The value of an entered text; throws an error with the problem. */
export function parsed({ kind, minimum, maximum }: Field, text: string): Json {
  if (kind === "boolean") return text === "true";
  if (kind === "json") return JSON.parse(text) as Json;
  if (kind === "text" || kind === "choice") return text;
  return numberIn(text, kind, minimum, maximum);
}

function numberIn(text: string, kind: Kind, minimum: number | undefined, maximum: number | undefined): number {
  const value = Number(text);
  if (!Number.isFinite(value)) throw new Error("not a number");
  if (kind === "whole" && !Number.isInteger(value)) throw new Error("not a whole number");
  if (minimum !== undefined && value < minimum) throw new Error(`at least ${minimum}`);
  if (maximum !== undefined && value > maximum) throw new Error(`at most ${maximum}`);
  return value;
}

/** The setting of a survey that has a form of its own. */
export const COLUMNS = "columns";

/** True for a switch between a method and its paper, a fitted value, and what only a reader of the code understands. */
export function isForResearch({ name, kind, description }: Pick<Field, "name" | "kind" | "description">): boolean {
  if (name === COLUMNS) return false;
  return (
    kind === "json" ||
    /\(ablation\)|\(paper: (?:true|keep)\)|\bours:|\bfitted\b|\b[A-Z]{5,}\b|P\(|\ba\/b\b/.test(description)
  );
}

/** A description as a sentence. */
export function sentence(line: string): string {
  return line && `${line.charAt(0).toUpperCase()}${line.slice(1)}${/[.!?]$/.test(line) ? "" : "."}`;
}

/** A description without its remarks on the paper. */
export function plainly(description: string): string {
  return description.replace(/\s*\((?:paper|ablation)[^)]*\)/g, "");
}
