import { useDeferredValue, useState, type ReactNode } from "react";
import { remove } from "../api";
import { when } from "../format";
import { FILTER } from "../filter-field";
import { Busy, Problem } from "../parts";
import type { DocumentRow } from "../types";
import { go, hrefOf } from "../route";
import { DeleteButton, Selection } from "../selection";
import { refresh, useAction, useServer } from "../server";
import { DocumentDialog } from "./document-dialog";
import { searchIn, typeOf } from "./search";
import { Upload } from "./upload";

const PAGE = 200;
const COLUMNS = 8;

/** The documents of the collection: add, find, read and delete them. The address may name one to open. */
export default function Documents({ ingest, id }: { ingest: string; id: string }) {
  const [opened, setOpened] = useState<Pick<DocumentRow, "id" | "title"> | null>(id ? { id, title: id } : null);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [typed, setTyped] = useState("");
  const { find, where } = searchIn(useDeferredValue(typed));
  const changed = () => refresh("documents");
  const { value: rows } = useServer<DocumentRow[]>(pathOf(find, where));
  const ids = (rows ?? []).map((row) => row.id);
  const list = { find, where, selected, onSelect: setSelected, onOpen: setOpened, onGone: changed };
  return (
    <article className="page">
      <h1>Documents</h1>
      <Upload ingest={ingest} onRead={changed} />
      <label className="find">
        <span className="unseen">Search</span>
        <input
          type="search"
          maxLength={2000}
          spellCheck={false}
          placeholder={`Search titles, or ${FILTER}`}
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
        />
      </label>
      <Selection
        ids={[...selected]}
        noun="document"
        remark="The documents are deleted from the collection. The files themselves are not deleted."
        remove={removeDocument}
        onGone={changed}
        onDone={() => setSelected(new Set())}
      />
      <div>
        <table className="documents cards">
          <thead>
            <tr>
              <th scope="col">
                <input
                  type="checkbox"
                  aria-label="Select all documents"
                  checked={Boolean(rows?.length) && ids.every((id) => selected.has(id))}
                  onChange={(event) => setSelected(new Set(event.target.checked ? ids : []))}
                />
              </th>
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
          <Page key={`${find}\n${where}`} {...list} after="" />
        </table>
      </div>
      {opened && (
        <DocumentDialog
          citation={{ document: opened.id, title: opened.title, quote: "", start: 0, end: 0 }}
          onClose={() => {
            setOpened(null);
            if (id) go(hrefOf("documents"));
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
  selected: ReadonlySet<string>;
  onSelect: (selected: ReadonlySet<string>) => void;
  onGone: () => void;
  onOpen: (row: DocumentRow) => void;
}

/** A page of documents, and a button for the next page. */
function Page({ after, ...list }: PageProps) {
  const { find, where, selected, onSelect, onOpen, onGone } = list;
  const { value: rows, problem } = useServer<DocumentRow[]>(pathOf(find, where, after));
  const [wanted, setWanted] = useState(false);
  const last = rows?.length === PAGE ? rows.at(-1) : undefined;
  if (!rows) return <FullRow>{problem ? <Problem>{problem}</Problem> : <Busy>Loading the documents</Busy>}</FullRow>;
  if (!rows.length && !after) return <FullRow>{find || where ? "No document matches." : "No documents yet."}</FullRow>;
  return (
    <>
      <tbody>
        {rows.map((row) => (
          <Row
            key={row.id}
            row={row}
            selected={selected.has(row.id)}
            onSelect={(add) =>
              onSelect(new Set(add ? [...selected, row.id] : [...selected].filter((id) => id !== row.id)))
            }
            onOpen={onOpen}
            onGone={onGone}
          />
        ))}
      </tbody>
      {last && wanted && <Page {...list} after={last.id} />}
      {last && !wanted && (
        <FullRow>
          <button onClick={() => setWanted(true)}>Show more</button>
        </FullRow>
      )}
    </>
  );
}

function pathOf(find: string, where: string, after = ""): string {
  return `documents?${new URLSearchParams({ limit: String(PAGE), after, find, where }).toString()}`;
}

function FullRow({ children }: { children: ReactNode }) {
  return (
    <tbody>
      <tr>
        <td colSpan={COLUMNS}>{children}</td>
      </tr>
    </tbody>
  );
}

interface RowProps {
  row: DocumentRow;
  selected: boolean;
  onSelect: (add: boolean) => void;
  onOpen: (row: DocumentRow) => void;
  onGone: () => void;
}

function Row({ row, selected, onSelect, onOpen, onGone }: RowProps) {
  const deleting = useAction(async () => {
    await removeDocument(row.id);
    onGone();
  });
  return (
    <tr>
      <td>
        <input
          type="checkbox"
          aria-label={`Select ${row.title}`}
          checked={selected}
          onChange={(event) => onSelect(event.target.checked)}
        />
      </td>
      <th scope="row">
        <button className="link" onClick={() => onOpen(row)}>
          {row.title}
        </button>
        <span className="quiet source">{row.source}</span>
        <Problem>{deleting.problem}</Problem>
      </th>
      <td>{typeOf(row.media_type)}</td>
      <td>{row.passages}</td>
      <td>{row.date}</td>
      <td>{row.tags?.join(", ")}</td>
      <td>{when(row.added_at)}</td>
      <td>
        <DeleteButton
          label={`Delete ${row.title}`}
          title={`Delete “${row.title}”?`}
          remark="The document is deleted from the collection. The file itself is not deleted."
          deleting={deleting}
        />
      </td>
    </tr>
  );
}

function removeDocument(id: string): Promise<void> {
  return remove(`documents/${encodeURIComponent(id)}`);
}
