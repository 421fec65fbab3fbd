import { useState } from "react";
import { request } from "../api";
import { DocumentDialog } from "../documents/document-dialog";
import { count } from "../format";
import { Problem } from "../parts";
import { saveBlob } from "../save";
import { useAction } from "../server";
import type { Citation } from "../types";
import type { Cell, Survey } from "./survey";

const STEP = 100;
const FORMATS = { csv: "CSV", xlsx: "Excel", md: "Markdown" };

interface Props {
  survey: Survey;
  /** The run of a finished survey, whose table can be saved. */
  id?: string;
}

/** A row for each document; a cell opens its quote. */
export function SurveyTable({ survey: { columns, figures, rows }, id }: Props) {
  const [opened, setOpened] = useState<Citation | null>(null);
  const [shown, setShown] = useState(STEP);
  const [all, setAll] = useState(false);
  const asked = rows.filter((row) => row.cells);
  const counted = asked.filter((row) => row.is_counted);
  const visible = all ? asked : counted;
  return (
    <section className="survey wide stack" aria-label="Table">
      <p className="row spread">
        <span>
          {count(asked.length, "document")} of {rows.length} asked
        </span>
        {counted.length < asked.length && (
          <label className="inline">
            <input type="checkbox" checked={all} onChange={(event) => setAll(event.target.checked)} />
            Also the {asked.length - counted.length} that do not meet the conditions
          </label>
        )}
        {id && <Downloads run={id} what="table" formats={FORMATS} />}
      </p>
      {figures.length > 0 && (
        <ul className="quiet" aria-label="Figures">
          {figures.map((line) => (
            <li key={line}>{line}</li>
          ))}
        </ul>
      )}
      <div className="scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">Document</th>
              {columns.map(({ name, question }) => (
                <th key={name} scope="col" title={question}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {visible.slice(0, shown).map(({ document, title, source, cells }) => (
              <tr key={document}>
                <th scope="row" title={source}>
                  {title}
                </th>
                {columns.map(({ name }) => (
                  <td key={name}>
                    <CellView cell={cells?.[name]} onOpen={setOpened} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {visible.length > shown && (
        <button type="button" onClick={() => setShown(shown + STEP)}>
          Show more ({visible.length - shown} left)
        </button>
      )}
      {opened && <DocumentDialog citation={opened} onClose={() => setOpened(null)} />}
    </section>
  );
}

function CellView({ cell, onOpen }: { cell: Cell | undefined; onOpen: (citation: Citation) => void }) {
  if (!cell?.value) return <span className="quiet">–</span>;
  const [citation] = cell.citations;
  return (
    <>
      {citation ? (
        <button className="link" onClick={() => onOpen(citation)}>
          {cell.value}
        </button>
      ) : (
        cell.value
      )}
      {cell.doubt && <span className="doubt"> in doubt: {cell.doubt}</span>}
    </>
  );
}

interface DownloadsProps {
  run: string;
  /** The part of the run that is saved. */
  what: "table" | "report";
  /** The names of the formats. */
  formats: Record<string, string>;
}

export function Downloads({ run, what, formats }: DownloadsProps) {
  const saving = useAction(async (format: string) => {
    const response = await request(`runs/${run}/${what}?format=${format}`);
    saveBlob(`${what}-${run}.${format}`, await response.blob());
  });
  return (
    <span className="row" role="group" aria-label={`Save the ${what}`}>
      {Object.entries(formats).map(([format, label]) => (
        <button key={format} type="button" disabled={saving.busy} onClick={() => void saving.run(format)}>
          {label}
        </button>
      ))}
      <Problem>{saving.problem}</Problem>
    </span>
  );
}
