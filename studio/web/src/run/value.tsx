import { isReference } from "../changes";
import type { Texts } from "../texts";
import type { Json } from "../types";

/** A value of the state as a tree, with titles of passages instead of references. */
export function Value({
  value,
  texts,
  changed,
}: {
  value: Json;
  texts: Texts;
  changed?: ReadonlySet<string> | undefined;
}) {
  if (typeof value !== "object" || value === null) return <Leaf value={value} texts={texts} />;
  const entries = Object.entries(value);
  if (!entries.length) return <span className="quiet">{Array.isArray(value) ? "none" : "nothing"}</span>;
  return (
    <dl className="value">
      {entries.map(([key, each]) => (
        <div key={key} className={changed?.has(key) ? "changed" : undefined}>
          <dt>
            {key} {changed?.has(key) && <span className="chip is-changed">changed</span>}
          </dt>
          <dd>
            <Value value={each} texts={texts} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Leaf({ value, texts }: { value: Json; texts: Texts }) {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  if (!isReference(text)) return <span>{text || "“”"}</span>;
  const passage = texts.passages.get(text);
  return passage ? <span title={passage.text}>passage: {passage.title}</span> : <code>{text.slice(0, 12)}…</code>;
}
