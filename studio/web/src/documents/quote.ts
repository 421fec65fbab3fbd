/** The position of a quote in the text layer of a PDF page. */

/** A part of an item of the text layer, in UTF-16 units. */
export interface Piece {
  item: number;
  start: number;
  end: number;
}

/**
 * The first and last page of a citation's location, as in "p. 12", "p. 3–4" or, with printed numbers before those of the
 * file, "p. iv–1, 4th–5th page"; null if it names no page.
 */
export function pagesOf(location: string): [number, number] | null {
  const found = /^p\. (?:.*, (?=.* page$))?(\d+)[a-z]*(?:–(\d+)[a-z]*)?(?: page)?$/.exec(location);
  return found ? [Number(found[1]), Number(found[2] ?? found[1])] : null;
}

/**
 * The parts of the items that contain a quote; empty if it is not there.
 *
 * Only letters and digits are compared, without case and accents: the server joins lines and hyphenated words, and a
 * PDF may have its spaces, ligatures and accents in another form.
 */
export function findQuote(items: string[], quote: string): Piece[] {
  const wanted = letters(quote)
    .map(({ letter }) => letter)
    .join("");
  if (!wanted) return [];
  const owners: Piece[] = [];
  let text = "";
  items.forEach((content, item) => {
    for (const { letter, start, end } of letters(content)) {
      text += letter;
      owners.push(...Array.from({ length: letter.length }, () => ({ item, start, end })));
    }
  });
  const at = text.indexOf(wanted);
  return at < 0 ? [] : joined(owners.slice(at, at + wanted.length));
}

function joined(owners: Piece[]): Piece[] {
  const pieces: Piece[] = [];
  for (const { item, start, end } of owners) {
    const last = pieces.at(-1);
    if (last?.item === item) last.end = end;
    else pieces.push({ item, start, end });
  }
  return pieces;
}

/** The letters and digits of a text in their plainest form, with the position of the character of each. */
function letters(text: string): { letter: string; start: number; end: number }[] {
  const found = [];
  let start = 0;
  for (const character of text) {
    const end = start + character.length;
    const letter = character
      .normalize("NFKD")
      .toLowerCase()
      .replace(/[^\p{L}\p{N}]/gu, "");
    if (letter) found.push({ letter, start, end });
    start = end;
  }
  return found;
}
