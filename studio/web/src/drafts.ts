import { useState } from "react";

const PREFIX = "sleuth-draft:";

/** A text that is typed, kept until the tab is closed: it survives leaving the view and reloading the page. */
export function useDraft(name: string): [string, (text: string) => void] {
  const [text, setText] = useState(() => sessionStorage.getItem(PREFIX + name) ?? "");
  const keep = (typed: string) => {
    setText(typed);
    if (typed) sessionStorage.setItem(PREFIX + name, typed);
    else sessionStorage.removeItem(PREFIX + name);
  };
  return [text, keep];
}
