import {
  getDocument,
  GlobalWorkerOptions,
  TextLayer,
  type PDFDocumentLoadingTask,
  type PDFDocumentProxy,
} from "pdfjs-dist/legacy/build/pdf.mjs";
import worker from "pdfjs-dist/legacy/build/pdf.worker.min.mjs?url";
import { useEffect, useRef, useState } from "react";
import { messageOf, request } from "../api";
import { Busy } from "../parts";
import "../styles/pdf-original.css";
import { findQuote, pagesOf } from "./quote";

GlobalWorkerOptions.workerSrc = worker;

interface Props {
  document: string;
  location: string;
  quote: string;
  /** The original cannot be shown. */
  onProblem: (problem: string) => void;
}

interface Opened {
  pdf: PDFDocumentProxy;
  page: number;
}

/** The original of a PDF document, opened at the page of a citation. This module is loaded only for it. */
export default function PdfOriginal({ document, location, quote, onProblem }: Props) {
  const [opened, setOpened] = useState<Opened | null>(null);
  useEffect(() => {
    const closing = new AbortController();
    let task: PDFDocumentLoadingTask | null = null;
    const open = async (): Promise<Opened | null> => {
      const path = `originals/${encodeURIComponent(document)}`;
      const data = await (await request(path, { signal: closing.signal })).arrayBuffer();
      if (closing.signal.aborted) return null;
      // The page's policy forbids compiling code.
      task = getDocument({ data, isEvalSupported: false, useWasm: false });
      const pdf = await task.promise;
      return { pdf, page: await pageOf(pdf, location, quote) };
    };
    open()
      .then((found) => {
        if (!closing.signal.aborted) setOpened(found);
      })
      .catch((error: unknown) => {
        if (!closing.signal.aborted) onProblem(messageOf(error));
      });
    return () => {
      closing.abort();
      void task?.destroy();
    };
  }, [document, location, quote, onProblem]);
  if (!opened) return <Busy>Opening the original</Busy>;
  const { pdf, page } = opened;
  const turn = (by: number) => setOpened({ pdf, page: page + by });
  return (
    <div className="stack">
      <div className="row">
        <button type="button" disabled={page === 1} onClick={turn.bind(null, -1)}>
          Previous page
        </button>
        <span role="status">
          Page {page} of {pdf.numPages}
        </span>
        <button type="button" disabled={page === pdf.numPages} onClick={turn.bind(null, 1)}>
          Next page
        </button>
      </div>
      <Page key={page} pdf={pdf} number={page} quote={quote} onProblem={onProblem} />
    </div>
  );
}

interface PageProps {
  pdf: PDFDocumentProxy;
  number: number;
  quote: string;
  onProblem: (problem: string) => void;
}

function Page({ pdf, number, quote, onProblem }: PageProps) {
  const box = useRef<HTMLDivElement>(null);
  const [isMarked, setMarked] = useState(true);
  useEffect(() => {
    const sheet = document.createElement("div");
    sheet.className = "sheet";
    box.current?.append(sheet);
    const closing = new AbortController();
    draw(pdf, number, sheet, closing.signal)
      .then((layer) => {
        if (closing.signal.aborted) return;
        const marks = mark(layer, quote);
        marks[0]?.scrollIntoView({ block: "center" });
        setMarked(marks.length > 0);
      })
      .catch((error: unknown) => {
        if (!closing.signal.aborted) onProblem(messageOf(error));
      });
    return () => {
      closing.abort();
      sheet.remove();
    };
  }, [pdf, number, quote, onProblem]);
  return (
    <>
      {quote && !isMarked && <p className="hint">The quote is not on this page, or the page has it in another form.</p>}
      <div ref={box} className="original" role="region" aria-label={`Page ${number} of the original`} tabIndex={0} />
    </>
  );
}

/** Draw a page with its text layer, as wide as the sheet. */
async function draw(
  pdf: PDFDocumentProxy,
  number: number,
  sheet: HTMLElement,
  signal: AbortSignal,
): Promise<TextLayer> {
  const page = await pdf.getPage(number);
  const scale = sheet.clientWidth / page.getViewport({ scale: 1 }).width;
  const viewport = page.getViewport({ scale });
  const canvas = document.createElement("canvas");
  const container = document.createElement("div");
  container.className = "textLayer";
  sheet.append(canvas, container);
  sheet.style.setProperty("--total-scale-factor", String(scale));
  sheet.style.aspectRatio = `${viewport.width} / ${viewport.height}`;
  const density = window.devicePixelRatio || 1;
  canvas.width = Math.floor(viewport.width * density);
  canvas.height = Math.floor(viewport.height * density);
  const rendering = page.render({ canvas, viewport, transform: [density, 0, 0, density, 0, 0] });
  const layer = new TextLayer({ textContentSource: await page.getTextContent(), container, viewport });
  signal.addEventListener("abort", () => {
    rendering.cancel();
    layer.cancel();
  });
  await Promise.all([rendering.promise, layer.render()]);
  return layer;
}

/** Mark a quote in a text layer; the marks are empty if it is not there. */
function mark(layer: TextLayer, quote: string): HTMLElement[] {
  const marks = [];
  for (const { item, start, end } of findQuote(layer.textContentItemsStr, quote)) {
    const text = layer.textDivs[item]?.firstChild;
    if (!text) continue;
    const range = document.createRange();
    range.setStart(text, start);
    range.setEnd(text, end);
    const made = document.createElement("mark");
    range.surroundContents(made);
    marks.push(made);
  }
  return marks;
}

/** The page of a location that contains the quote; the first one if none does. */
async function pageOf(pdf: PDFDocumentProxy, location: string, quote: string): Promise<number> {
  const [first, last] = pagesOf(location) ?? [1, 1];
  for (let number = first; number <= Math.min(last, pdf.numPages); number += 1) {
    const { items } = await (await pdf.getPage(number)).getTextContent();
    const texts = items.map((item) => ("str" in item ? item.str : ""));
    if (findQuote(texts, quote).length) return number;
  }
  return Math.min(first, pdf.numPages);
}
