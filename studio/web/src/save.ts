/** Saving and copying what the page shows. */

/** Let the browser save a text as a file. */
export function save(name: string, text: string, type: string): void {
  saveBlob(name, new Blob([text], { type }));
}

/** Let the browser save data as a file. */
export function saveBlob(name: string, data: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(data);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

/** Copy a text; throws where the browser gives pages no clipboard. */
export async function copy(text: string): Promise<void> {
  if (!window.isSecureContext) throw new Error("Browsers copy only from pages with HTTPS. Save the answer instead.");
  await navigator.clipboard.writeText(text);
}
