import { useState } from "react";
import { DocumentDialog } from "../documents/document-dialog";
import type { Texts } from "../texts";
import type { Passage } from "../types";

/** The passages that a step found, as they were at that time. */
export function Evidence({ texts, references }: { texts: Texts; references: string[] }) {
  const [opened, setOpened] = useState<Passage | null>(null);
  const passages = references.map((reference) => texts.passages.get(reference)).filter((each) => each !== undefined);
  if (!passages.length) return null;
  return (
    <details className="box" open>
      <summary>Evidence ({passages.length} passages)</summary>
      <ul className="evidence">
        {passages.map((passage) => (
          <li key={passage.id}>
            <button
              className="link"
              onClick={() => {
                setOpened(passage);
              }}
            >
              {passage.title}
            </button>
            <p>{passage.text}</p>
          </li>
        ))}
      </ul>
      {opened && (
        <DocumentDialog
          citation={{ ...opened, quote: opened.text }}
          onClose={() => {
            setOpened(null);
          }}
        />
      )}
    </details>
  );
}
