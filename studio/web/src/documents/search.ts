/** What is typed into the one search box of documents: conditions on their metadata, and words of their titles. */

const CONDITION = /^!?[a-z_-]+(?:>=|<=|!=|[=:<>])./i;

/** The parts of a search: `find` for titles, `where` for metadata. */
export function searchIn(typed: string): { find: string; where: string } {
  const parts = typed.match(/[^\s"]*"[^"]*"|\S+/g) ?? [];
  const isCondition = (part: string) => CONDITION.test(part);
  return {
    find: parts.filter((part) => !isCondition(part)).join(" "),
    where: parts.filter(isCondition).join(" "),
  };
}

const NAMES: Record<string, string> = {
  "vnd.openxmlformats-officedocument.wordprocessingml.document": "Word",
  "vnd.openxmlformats-officedocument.spreadsheetml.sheet": "Excel",
  "vnd.openxmlformats-officedocument.presentationml.presentation": "PowerPoint",
  "vnd.oasis.opendocument.text": "OpenDocument text",
  "vnd.oasis.opendocument.spreadsheet": "OpenDocument sheet",
  "vnd.oasis.opendocument.presentation": "OpenDocument slides",
  "vnd.ms-outlook": "Email",
  "x-ipynb+json": "Notebook",
  "x-source": "Source code",
  "epub+zip": "E-book",
  markdown: "Markdown",
  rfc822: "Email",
  html: "Web page",
  "xhtml+xml": "Web page",
  plain: "Text",
  rtf: "Rich text",
  "x-rst": "Text",
  mbox: "Emails",
  "tab-separated-values": "Table",
  csv: "Table",
};

/** The name that people use for a media type. */
export function typeOf(mediaType: string): string {
  const [kind = "", name = ""] = mediaType.toLowerCase().split("/");
  if (kind === "image") return "Picture";
  return NAMES[name] ?? name.replace(/^(x-|vnd\.)/, "").toUpperCase();
}
