import { useState } from "react";

const PREFIX = "sleuth-draft:";

/** A text that is typed, kept until the tab is closed: it survives leaving the view and reloading the page. */
export function useDraft(name: string): [string, (text: string) => void] {
  const [text, setText] = useState(() => sessionStorage.getItem(PREFIX + name) ?? "");
  const keep = (typed: string) => {
    setText(typed);
    keepDraft(name, typed);
  };
  return [text, keep];
}

/** Set a draft that another view shows. */
export function keepDraft(name: string, text: string): void {
  if (text) sessionStorage.setItem(PREFIX + name, text);
  else sessionStorage.removeItem(PREFIX + name);
}
