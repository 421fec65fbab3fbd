import { useMemo } from "react";
import { useServer } from "../server";
import { textsOf } from "../texts";
import type { Moment } from "../types";
import { PassageItem } from "./evidence";
import { differenceOf, foundOn, placeText, type Found } from "./passages";

interface Branch {
  thread: string;
  path: Moment[];
}

/** The passages that only one of two branches found. */
export function PassageDifferences({ a, b }: { a: Branch; b: Branch }) {
  const found = [useFound(a), useFound(b)] as const;
  const { onlyA, onlyB } = differenceOf(...found);
  if (!onlyA.length && !onlyB.length) return null;
  return (
    <section aria-labelledby="passages" className="wide">
      <h2 id="passages">Passages</h2>
      <div className="compare">
        <Only label="Only in the first" found={onlyA} />
        <Only label="Only in the second" found={onlyB} />
      </div>
    </section>
  );
}

function useFound({ thread, path }: Branch): Map<string, Found> {
  const { value } = useServer<{ texts: Record<string, string> }>(`runs/${thread}/export`);
  return useMemo(() => foundOn(path, textsOf(value?.texts ?? {})), [path, value]);
}

function Only({ label, found }: { label: string; found: Found[] }) {
  return (
    <section aria-label={label}>
      <h3>
        {label} ({found.length})
      </h3>
      <ul className="evidence">
        {found.map((each) => (
          <PassageItem key={each.passage.id} passage={each.passage}>
            <p className="quiet">{placeText(each)}</p>
          </PassageItem>
        ))}
      </ul>
    </section>
  );
}
