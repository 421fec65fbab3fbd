import { useState, type ReactNode } from "react";
import { remove } from "../api";
import { when } from "../format";
import { FilterField } from "../filter-field";
import { Busy, Problem } from "../parts";
import type { DocumentRow } from "../types";
import { useAction, useLoaded } from "../use";
import { DocumentDialog } from "./document-dialog";
import { Upload } from "./upload";

const PAGE = 200;

/** The documents of the collection: add, find, read and delete them. */
export function Documents({ ingest }: { ingest: string }) {
  const [version, setVersion] = useState(0);
  const [opened, setOpened] = useState<DocumentRow | null>(null);
  const [find, setFind] = useState("");
  const [typed, setTyped] = useState("");
  const [where, setWhere] = useState("");
  const changed = () => {
    setVersion((before) => before + 1);
  };
  return (
    <article className="page">
      <h1>Documents</h1>
      <Upload ingest={ingest} onRead={changed} />
      <label className="inline find">
        Find by title
        <input
          type="search"
          maxLength={200}
          value={find}
          onChange={(event) => {
            setFind(event.target.value);
          }}
        />
      </label>
      <form
        className="row"
        onSubmit={(event) => {
          event.preventDefault();
          setWhere(typed);
        }}
      >
        <FilterField where={typed} onType={setTyped} />
        <button>Filter</button>
      </form>
      <div className="scroll" role="region" aria-label="Documents" tabIndex={0}>
        <table className="documents">
          <thead>
            <tr>
              <th scope="col">title</th>
              <th scope="col">passages</th>
              <th scope="col">date</th>
              <th scope="col">tags</th>
              <th scope="col">added</th>
              <th scope="col">
                <span className="unseen">actions</span>
              </th>
            </tr>
          </thead>
          <Page
            key={`${find}\n${where}`}
            find={find}
            where={where}
            after=""
            version={version}
            onOpen={setOpened}
            onGone={changed}
          />
        </table>
      </div>
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

interface PageProps {
  find: string;
  where: string;
  after: string;
  version: number;
  onOpen: (row: DocumentRow) => void;
  onGone: () => void;
}

/** A page of documents, and a button for the next page. */
function Page({ find, where, after, version, onOpen, onGone }: PageProps) {
  const path = `documents?${new URLSearchParams({ limit: String(PAGE), after, find, where }).toString()}`;
  const { value: rows, problem } = useLoaded<DocumentRow[]>(path, version);
  const [wanted, setWanted] = useState(false);
  const last = rows?.length === PAGE ? rows.at(-1) : undefined;
  if (!rows) return <FullRow>{problem ? <Problem>{problem}</Problem> : <Busy>Loading the documents</Busy>}</FullRow>;
  if (!rows.length && !after) return <FullRow>{find || where ? "No document matches." : "No documents yet."}</FullRow>;
  return (
    <>
      <tbody>
        {rows.map((row) => (
          <Row key={row.id} row={row} onOpen={onOpen} onGone={onGone} />
        ))}
      </tbody>
      {last && wanted && (
        <Page find={find} where={where} after={last.id} version={version} onOpen={onOpen} onGone={onGone} />
      )}
      {last && !wanted && (
        <FullRow>
          <button
            onClick={() => {
              setWanted(true);
            }}
          >
            Show more
          </button>
        </FullRow>
      )}
    </>
  );
}

function FullRow({ children }: { children: ReactNode }) {
  return (
    <tbody>
      <tr>
        <td colSpan={6}>{children}</td>
      </tr>
    </tbody>
  );
}

interface RowProps {
  row: DocumentRow;
  onOpen: (row: DocumentRow) => void;
  onGone: () => void;
}

function Row({ row, onOpen, onGone }: RowProps) {
  const deleting = useAction(async () => {
    if (!confirm(`Delete “${row.title}” from the collection? The file itself is not deleted.`)) return;
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
      <td>{row.date}</td>
      <td>{row.tags?.join(", ")}</td>
      <td>{when(row.added_at)}</td>
      <td>
        <button onClick={() => void deleting.run()} disabled={deleting.busy} aria-label={`Delete ${row.title}`}>
          {deleting.busy ? "Deleting…" : "Delete"}
        </button>
      </td>
    </tr>
  );
}
