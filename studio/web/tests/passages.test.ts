import { expect, test } from "vitest";
import { differenceOf, foundOn, pathText, placeText } from "../src/run/passages";
import { findingsOf } from "../src/run/sentences";
import { textsOf } from "../src/texts";
import { moment } from "./scene";

const hash = (letter: string) => letter.repeat(64);
const passage = (id: string) => JSON.stringify({ id, document_id: "d", title: id, text: id, start: 0, end: 1 });
const hit = (letter: string, score: number) => ({ passage: hash(letter), score, parts: {}, paths: [] });
const search = (...hits: object[]) => JSON.stringify({ query: "Who?", mode: "graph", hits });

const TEXTS = textsOf({
  [hash("a")]: passage("light"),
  [hash("b")]: passage("fair"),
  [hash("c")]: passage("oake"),
  [hash("d")]: search(hit("a", 2), hit("b", 1)),
  [hash("e")]: search(hit("b", 3), hit("c", 0.5)),
  [hash("f")]: "a prompt",
});

test("a passage has its best rank, and none if no search found it", () => {
  const path = [
    moment("x", "", { changed: { searches: [hash("d")], coarse: [hash("a"), hash("b")] } }),
    moment("y", "x", { changed: { searches: [hash("d"), hash("e")], around: [hash("c")], calls: { "1": hash("f") } } }),
  ];
  const places = [...foundOn(path, TEXTS)].map(([id, found]) => [id, placeText(found)]);
  expect(places).toEqual([
    ["light", "rank 1, score 2.00"],
    ["fair", "rank 1, score 3.00"],
    ["oake", "rank 2, score 0.500"],
  ]);
  const without = foundOn([moment("x", "", { changed: { evidence: [hash("a")] } })], TEXTS);
  expect(placeText(without.get("light") ?? { rank: 9, score: 0 })).toBe("not ranked");
});

test("passages that both branches found are no difference", () => {
  const a = foundOn([moment("x", "", { changed: { searches: [hash("d")] } })], TEXTS);
  const b = foundOn([moment("y", "", { changed: { searches: [hash("e")] } })], TEXTS);
  const { onlyA, onlyB } = differenceOf(a, b);
  expect([onlyA, onlyB].map((all) => all.map((each) => each.passage.id))).toEqual([["light"], ["oake"]]);
});

test("the path of graph search is a sentence with the title of its source", () => {
  const path = { kind: "shares", source: "light", name: "Oake", sentence: "Built by Oake." };
  expect(pathText(path, TEXTS)).toBe("Shares “Oake” with “light”: Built by Oake.");
  expect(pathText({ ...path, kind: "walks", source: "" }, TEXTS)).toBe(
    "Reached from the query over “Oake”: Built by Oake.",
  );
});

test("records of searches are not counted as passages", () => {
  const update = { coarse: { "1": [hash("a")] }, searches: [hash("d")] };
  expect(findingsOf({ node: "retrieve_coarse", update })).toEqual(["Found 1 passage"]);
});
