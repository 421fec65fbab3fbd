/** The position of a quote in a document's text. */

export interface Span {
  start: number;
  end: number;
}

const CONTEXT = 50_000;

/**
 * The position that a citation names, or the quote's current position if the document has changed.
 *
 * The server counts characters, JavaScript UTF-16 units: they differ after the first character outside the basic plane.
 */
export function placeOf(text: string, cited: Span & { quote: string }): Span | null {
  const start = units(text, cited.start);
  const end = units(text, cited.end);
  if (same(text.slice(start, end), cited.quote)) return { start, end };
  const at = text.indexOf(cited.quote);
  return at < 0 || !cited.quote ? null : { start: at, end: at + cited.quote.length };
}

function units(text: string, characters: number): number {
  let at = 0;
  for (let left = characters; left > 0 && at < text.length; left -= 1)
    at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
  return at;
}

function same(a: string, b: string): boolean {
  return a.replace(/\s+/g, " ").trim() === b.replace(/\s+/g, " ").trim();
}

/** The text around a position, truncated to so many characters on each side. */
export function around(text: string, { start, end }: Span, context = CONTEXT) {
  const from = Math.max(0, start - context);
  const to = Math.min(text.length, end + context);
  return {
    before: (from > 0 ? "… " : "") + text.slice(from, start),
    quoted: text.slice(start, end),
    after: text.slice(end, to) + (to < text.length ? " …" : ""),
  };
}
