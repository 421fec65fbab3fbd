import { expect, test } from "vitest";
import { chosenIn, droppedIn } from "../src/documents/chosen";
import { resultsOf, summaryOf } from "../src/documents/summary";
import type { Ingest } from "../src/types";

function file(name: string): FileSystemFileEntry {
  const read = (take: (file: File) => void) => {
    take(new File(["x"], name));
  };
  return { name, isDirectory: false, file: read } as unknown as FileSystemFileEntry;
}

/** A folder whose reader returns one entry at a time. */
function folder(name: string, ...entries: FileSystemEntry[]): FileSystemDirectoryEntry {
  const createReader = () => {
    const left = [...entries];
    return {
      readEntries: (take: (some: FileSystemEntry[]) => void) => {
        take(left.splice(0, 1));
      },
    };
  };
  return { name, isDirectory: true, createReader } as unknown as FileSystemDirectoryEntry;
}

function item(entry: FileSystemEntry | null, name = "x"): DataTransferItem {
  return { webkitGetAsEntry: () => entry, getAsFile: () => new File(["x"], name) } as unknown as DataTransferItem;
}

test("a dropped folder is read with the folders in it, without hidden ones", async () => {
  const house = folder("house", file("a.md"), folder("b", file("c.md"), file("d.md")), folder(".git", file("HEAD")));
  const found = await droppedIn([item(house), item(file("loose.md"), "loose.md"), item(null, "old.md")]);
  expect(found.map(({ name }) => name)).toEqual(["house/a.md", "house/b/c.md", "house/b/d.md", "loose.md", "old.md"]);
});

test("a chosen folder keeps its paths, a chosen hidden file is wanted", () => {
  const inside = (path: string) =>
    Object.assign(new File([], path.split("/").at(-1) ?? ""), { webkitRelativePath: path });
  const files = [inside("house/a.md"), inside("house/.DS_Store"), new File([], ".notes")];
  expect(chosenIn(files).map(({ name }) => name)).toEqual(["house/a.md", ".notes"]);
});

const INGEST: Ingest = {
  status: "done",
  files: ["a.md", "b.zip", "c.md"],
  read: 3,
  total: 3,
  failed: [
    { source: "b.zip", problem: "b.zip/x.pdf: is damaged." },
    { source: "b.zip", problem: "b.zip/y.pdf: is empty." },
  ],
  outcomes: { "a.md": "added", "b.zip": "added", "c.md": "unchanged" },
  done: true,
};

test("an upload has each file once, the failed ones first with all reasons", () => {
  expect(resultsOf(INGEST)).toEqual([
    { file: "b.zip", outcome: "failed", reason: "/x.pdf: is damaged. /y.pdf: is empty." },
    { file: "a.md", outcome: "added", reason: "" },
    { file: "c.md", outcome: "unchanged", reason: "" },
  ]);
  expect(summaryOf(INGEST)).toBe("3 files: 1 added, 1 unchanged, 1 failed.");
});

test("an archive is one file of an upload, and properties are none", () => {
  const ingest: Ingest = { ...INGEST, files: ["a.md", "a.md.meta.json", "b.zip"], read: 3, total: 3, failed: [] };
  expect(summaryOf({ ...ingest, outcomes: { "a.md": "added", "b.zip": "added" } })).toBe("2 files: 2 added.");
  expect(summaryOf({ ...ingest, status: "stopped", read: 2, outcomes: { "a.md": "added", "b.zip": "added" } })).toBe(
    "Stopped. 2 files: 2 added.",
  );
});

test("the summary of a stopped upload counts the rest", () => {
  const stopped: Ingest = { ...INGEST, status: "stopped", read: 1, failed: [], outcomes: { "a.md": "replaced" } };
  expect(summaryOf(stopped)).toBe("Stopped. 3 files: 1 replaced, 2 not ingested.");
  expect(summaryOf({ ...stopped, read: 0 })).toBe("Stopped. 3 files: 1 replaced, 2 not ingested (1 in part).");
});
