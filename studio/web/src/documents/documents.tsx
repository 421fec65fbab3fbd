import { useState, type ReactNode } from "react";
import { remove } from "../api";
import { Confirm } from "../dialog";
import { count, when } from "../format";
import { FilterField } from "../filter-field";
import { Busy, Problem } from "../parts";
import type { DocumentRow } from "../types";
import { refresh, useAction, useServer } from "../server";
import { DocumentDialog } from "./document-dialog";
import { Upload } from "./upload";

const PAGE = 200;

/** The documents of the collection: add, find, read and delete them. */
export default function Documents({ ingest }: { ingest: string }) {
  const [opened, setOpened] = useState<DocumentRow | null>(null);
  const [find, setFind] = useState("");
  const [typed, setTyped] = useState("");
  const [where, setWhere] = useState("");
  const changed = () => {
    refresh("documents");
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
        className="row at-bottom"
        onSubmit={(event) => {
          event.preventDefault();
          setWhere(typed);
        }}
      >
        <FilterField where={typed} onType={setTyped} />
        <button>Filter</button>
      </form>
      <div>
        <table className="documents cards">
          <thead>
            <tr>
              <th scope="col">title</th>
              <th scope="col">type</th>
              <th scope="col">passages</th>
              <th scope="col">date</th>
              <th scope="col">tags</th>
              <th scope="col">added</th>
              <th scope="col">
                <span className="unseen">actions</span>
              </th>
            </tr>
          </thead>
          <Page key={`${find}\n${where}`} find={find} where={where} after="" onOpen={setOpened} onGone={changed} />
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
  onOpen: (row: DocumentRow) => void;
  onGone: () => void;
}

/** A page of documents, and a button for the next page. */
function Page({ find, where, after, onOpen, onGone }: PageProps) {
  const path = `documents?${new URLSearchParams({ limit: String(PAGE), after, find, where }).toString()}`;
  const { value: rows, problem } = useServer<DocumentRow[]>(path);
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
      {last && wanted && <Page find={find} where={where} after={last.id} onOpen={onOpen} onGone={onGone} />}
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
        <td colSpan={7}>{children}</td>
      </tr>
    </tbody>
  );
}

/** A short name of a media type, such as "pdf". */
function typeOf(mediaType: string): string {
  return (
    mediaType
      .split("/")
      .at(-1)
      ?.replace(/^(x-|vnd\.)/, "")
      .split(".")
      .at(-1) ?? ""
  );
}

interface RowProps {
  row: DocumentRow;
  onOpen: (row: DocumentRow) => void;
  onGone: () => void;
}

function Row({ row, onOpen, onGone }: RowProps) {
  const [asking, setAsking] = useState(false);
  const deleting = useAction(async () => {
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
      <td>{typeOf(row.media_type)}</td>
      <td>{count(row.passages, "passage")}</td>
      <td>{row.date}</td>
      <td>{row.tags?.join(", ")}</td>
      <td>{when(row.added_at)}</td>
      <td>
        <button
          onClick={() => {
            setAsking(true);
          }}
          disabled={deleting.busy}
          aria-label={`Delete ${row.title}`}
        >
          {deleting.busy ? "Deleting…" : "Delete"}
        </button>
        {asking && (
          <Confirm
            title={`Delete “${row.title}”?`}
            action="Delete"
            onConfirm={() => void deleting.run()}
            onClose={() => {
              setAsking(false);
            }}
          >
            The document is deleted from the collection. The file itself is not deleted.
          </Confirm>
        )}
      </td>
    </tr>
  );
}
