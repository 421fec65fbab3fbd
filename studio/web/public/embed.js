// The chat of `sleuth serve` on another page: <script src="https://HOST/embed.js" data-key="KEY"></script>
(() => {
  const { src, dataset } = document.currentScript;
  const title = dataset.title ?? "Ask a question";
  const stored = `sleuth ${src}`; // the chat continues on other pages of the same tab
  let thread = sessionStorage.getItem(stored);

  const STYLE = `
    :host { all: initial; color-scheme: inherit; font: 15px/1.5 system-ui, sans-serif; }
    #open, #panel { position: fixed; right: 1rem; bottom: 1rem; z-index: 2147483647; box-sizing: border-box; }
    #panel { inset-inline-start: auto; margin: 0; padding: 0; width: min(24rem, 100vw - 2rem); max-height: min(36rem, 100vh - 2rem);
      background: Canvas; color: CanvasText; border: 1px solid GrayText; border-radius: 0.75rem; }
    #panel[open] { display: flex; flex-direction: column; }
    header, form { display: flex; gap: 0.5rem; align-items: center; padding: 0.6rem 0.75rem; }
    header strong, input { flex: 1; min-width: 0; }
    button, input { font: inherit; padding: 0.35rem 0.75rem; border: 1px solid GrayText; border-radius: 0.5rem; }
    #messages { overflow-y: auto; padding: 0 0.75rem; overflow-wrap: anywhere; white-space: pre-wrap; }
    .human { font-weight: 600; margin: 0.75rem 0 0.25rem; }
    ol { margin: 0.25rem 0; padding-left: 1.5rem; font-size: 0.85em; white-space: normal; }
  `;

  const element = (tag, fields = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), fields);
    made.append(...children);
    return made;
  };

  const send = async (path, options = {}) => {
    const headers = { Authorization: `Bearer ${dataset.key}`, "Content-Type": "application/json" };
    const response = await fetch(new URL(`v1/runs${path}`, src), { ...options, headers });
    if (response.ok) return response;
    const body = await response.json().catch(() => null);
    throw new Error(body?.error?.message ?? `The server answered with status ${response.status}.`);
  };

  const read = async (path, attempts = 5) => {
    try {
      return await (await send(path)).text();
    } catch (error) {
      if (!(error instanceof TypeError) || attempts === 1) throw error; // a TypeError: the connection was lost
      await new Promise((resolve) => setTimeout(resolve, 2000));
      return read(path, attempts - 1);
    }
  };

  const source = ({ title, quote }) => element("li", {}, `${title}: “${quote}”`);

  const shown = ({ type, content, additional_kwargs: { citations = [], problem } }) => {
    const sources = citations.map(source);
    const [text] = sources.length ? content.split(/\n\n\[\^*1\] /) : [content];
    const parts = text.split(/(\\?\[\^*\d+\])/).map((part) => {
      const cited = part.startsWith("[") && sources[Number(part.replace(/\D/g, "")) - 1];
      if (cited) return element("sup", { title: cited.textContent }, part);
      return type === "ai" ? part.replace(/\\([[<])/g, "$1") : part; // our messages are Markdown
    });
    const message = element("div", { className: type }, ...parts, ...(problem ? [` ${problem}`] : []));
    if (sources.length) message.append(element("ol", { ariaLabel: "Sources" }, ...sources));
    return message;
  };

  const log = element("div", { id: "messages", role: "log", tabIndex: 0, ariaLabel: "Messages" });
  const field = element("input", { ariaLabel: "Question", placeholder: title, maxLength: 4000, required: true });
  const submit = element("button", { type: "submit" }, "Ask");
  const form = element("form", {}, field, submit);
  const close = element("button", { type: "button", ariaLabel: "Close" }, "×");
  const heading = element("header", {}, element("strong", {}, title), close);
  const panel = element("dialog", { id: "panel", ariaLabel: title }, heading, log, form);
  const open = element("button", { id: "open", type: "button", ariaExpanded: "false" }, title);

  const follow = async () => {
    for (let state = "running"; state === "queued" || state === "running";) {
      await read(`/${thread}/events`); // it ends when the run has ended
      const run = JSON.parse(await read(`/${thread}`));
      state = run.thread.state;
      log.replaceChildren(...run.state.messages.map(shown));
    }
  };

  const work = async (task) => {
    submit.disabled = true;
    const waiting = element("p", {}, "Searching the documents …");
    log.append(waiting);
    log.scrollTop = log.scrollHeight;
    try {
      await task();
    } catch (error) {
      const problem =
        error instanceof TypeError ? "The server cannot be reached, or does not answer this page." : error.message;
      log.append(element("p", { role: "alert" }, problem));
    }
    waiting.remove();
    submit.disabled = false;
    log.lastElementChild?.scrollIntoView({ block: "nearest" });
  };

  const show = (isOpen) => {
    if (isOpen) panel.show();
    else panel.close();
    open.hidden = isOpen;
    open.ariaExpanded = String(isOpen);
    (isOpen ? field : open).focus();
    if (isOpen && thread && !log.childElementCount) void work(follow);
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const question = field.value.trim();
    if (!question || submit.disabled) return;
    field.value = "";
    log.append(element("div", { className: "human" }, question));
    void work(async () => {
      const body = JSON.stringify({ question, ...(thread && { thread }) });
      const begun = await send("", { method: "POST", body });
      thread = (await begun.json()).thread;
      sessionStorage.setItem(stored, thread);
      await follow();
    });
  });
  open.addEventListener("click", () => show(true));
  close.addEventListener("click", () => show(false));
  panel.addEventListener("keydown", (event) => event.key === "Escape" && show(false));

  const host = element("div");
  const root = host.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet(); // allowed by policies that forbid inline styles
  sheet.replaceSync(STYLE);
  root.adoptedStyleSheets = [sheet];
  root.append(open, panel);
  document.documentElement.append(host); // the script may be in the head
})();
