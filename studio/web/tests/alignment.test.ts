import { expect, test } from "vitest";
import { aligned, isAlike, shortened, type Row } from "../src/run/alignment";

const row = (title: string, line = ""): Row => ({ title, lines: [line], cost: "" });
const titles = (a: Row[], b: Row[]) => aligned(a, b).map(([left, right]) => [left?.title ?? "", right?.title ?? ""]);

test("steps of the same kind are beside each other, those of the same number first", () => {
  const long = [
    row("Plan"),
    row("Search for step 1"),
    row("Draft for step 1"),
    row("Search for step 2"),
    row("Answer"),
  ];
  expect(titles(long, [row("Search"), row("Answer")])).toEqual([
    ["Plan", ""],
    ["Search for step 1", "Search"],
    ["Draft for step 1", ""],
    ["Search for step 2", ""],
    ["Answer", "Answer"],
  ]);
  expect(titles(long, [row("Plan"), row("Search for step 2"), row("Check")])).toEqual([
    ["Plan", "Plan"],
    ["Search for step 1", ""],
    ["Draft for step 1", ""],
    ["Search for step 2", "Search for step 2"],
    ["Answer", ""],
    ["", "Check"],
  ]);
  expect(titles([], [])).toEqual([]);
});

test("steps are alike if they found the same", () => {
  expect(isAlike([row("Search", "5 passages"), row("Search for step 1", "5 passages")])).toBe(true);
  expect(isAlike([row("Search", "5 passages"), row("Search", "4 passages")])).toBe(false);
  expect(isAlike([row("Search"), null])).toBe(false);
});

test("of a long table ten rows are shown", () => {
  const table = (rows: number) =>
    ["| a |", "| --- |", ...Array.from({ length: rows }, (_, at) => `| ${at} |`)].join("\n");
  expect(shortened(`Two.\n\n${table(10)}\n`)).toBe(`Two.\n\n${table(10)}\n`);
  expect(shortened(`Two.\n\n${table(25)}`)).toBe(`Two.\n\n${table(10)}\n\n… and 15 more rows.\n`);
});
