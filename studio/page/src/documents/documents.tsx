import { useState } from "react";
import { remove } from "../api";
import { when } from "../format";
import { Busy, Problem } from "../parts";
import type { DocumentRow } from "../types";
import { useAction, useLoaded } from "../use";
import { DocumentDialog } from "./document-dialog";
import { Upload } from "./upload";

/** The documents that questions are answered from: drop files in, look at them, delete them. */
export function Documents() {
  const { value: rows, problem, reload } = useLoaded<DocumentRow[]>("documents");
  const [opened, setOpened] = useState<DocumentRow | null>(null);
  return (
    <article className="page">
      <h1>Documents</h1>
      <Upload onRead={reload} />
      <Problem>{problem}</Problem>
      {!rows && !problem && <Busy>Loading the documents</Busy>}
      {rows?.length === 0 && <p className="quiet">There are none yet.</p>}
      {rows && rows.length > 0 && (
        <div className="scroll" role="region" aria-label="Documents" tabIndex={0}>
          <table className="documents">
            <thead>
              <tr>
                <th scope="col">title</th>
                <th scope="col">passages</th>
                <th scope="col">added</th>
                <th scope="col">
                  <span className="unseen">actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <Row key={row.id} row={row} onOpen={setOpened} onGone={reload} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {opened && (
        <DocumentDialog
          citation={{ document: opened.id, title: opened.title, quote: "", start: 0, end: 0 }}
          onClose={() => {
            setOpened(null);
          }}
        />
      )}
    </article>
  );
}

interface RowProps {
  row: DocumentRow;
  onOpen: (row: DocumentRow) => void;
  onGone: () => void;
}

function Row({ row, onOpen, onGone }: RowProps) {
  const deleting = useAction(async () => {
    if (!confirm(`Delete “${row.title}” from the collection? The file itself stays.`)) return;
    await remove(`documents/${encodeURIComponent(row.id)}`);
    onGone();
  });
  return (
    <tr>
      <th scope="row">
        <button
          className="link"
          onClick={() => {
            onOpen(row);
          }}
        >
          {row.title}
        </button>
        <span className="quiet source">{row.source}</span>
        <Problem>{deleting.problem}</Problem>
      </th>
      <td>{row.passages}</td>
      <td>{when(row.added_at)}</td>
      <td>
        <button onClick={() => void deleting.run()} disabled={deleting.busy} aria-label={`Delete ${row.title}`}>
          {deleting.busy ? "Deleting…" : "Delete"}
        </button>
      </td>
    </tr>
  );
}
