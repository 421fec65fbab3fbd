import { expect, test } from "vitest";
import { spent } from "../src/format";

const COST = { calls: 2, prompt_tokens: 900, completion_tokens: 100, model_seconds: 12.34 };

test("a cost shows the duration of the run", () => {
  expect(spent(COST, 4.5)).toBe("2 calls · 1,000 tokens · 4.5 s");
});

test("a cost without a duration shows the model time", () => {
  expect(spent(COST)).toBe("2 calls · 1,000 tokens · 12.3 s model time");
});
