/** The files that a person chose or dropped, also those in folders. */

export interface Chosen {
  /** With the folders in which it was chosen, as in `reports/plan.md`. */
  name: string;
  file: File;
}

/** The files of a chooser; those of a folder have its name in theirs. */
export function chosenIn(files: Iterable<File>): Chosen[] {
  const all = [...files].map((file) => ({ name: file.webkitRelativePath || file.name, file }));
  return all.filter(({ name, file }) => name === file.name || !isHidden(name));
}

/** The files of a drop, and those in its folders. The items must be those of the event itself, which expire with it. */
export async function droppedIn(items: Iterable<DataTransferItem>): Promise<Chosen[]> {
  const dropped = [...items].map((item) => ({ entry: item.webkitGetAsEntry(), file: item.getAsFile() }));
  const found = [];
  for (const { entry, file } of dropped) {
    if (entry?.isDirectory) found.push(...(await filesBelow(entry as FileSystemDirectoryEntry, entry.name)));
    else if (file) found.push({ name: file.name, file });
  }
  return found;
}

async function filesBelow(folder: FileSystemDirectoryEntry, path: string): Promise<Chosen[]> {
  const found = [];
  for (const entry of await entriesOf(folder)) {
    const name = `${path}/${entry.name}`;
    if (isHidden(entry.name)) continue;
    if (entry.isDirectory) found.push(...(await filesBelow(entry as FileSystemDirectoryEntry, name)));
    else found.push({ name, file: await fileOf(entry as FileSystemFileEntry, name) });
  }
  return found;
}

/** A reader returns the entries of a folder in parts; the last part is empty. */
async function entriesOf(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader();
  const all: FileSystemEntry[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return all;
    all.push(...some);
  }
}

function fileOf(entry: FileSystemFileEntry, name: string): Promise<File> {
  return new Promise((resolve, reject) => {
    entry.file(resolve, (error) => reject(new Error(`${name} cannot be read: ${error.message}`)));
  });
}

/** True for a file in a folder of tools, such as `.git`, and for one that a file manager left. */
function isHidden(path: string): boolean {
  return path.split("/").some((part) => part.startsWith("."));
}
