/** `npm run docs`: writes the generated pages to docs/reference. */
import { mkdir, writeFile } from 'node:fs/promises';
import { referencePages } from './reference-pages.ts';

const folder = new URL('../../../docs/reference/', import.meta.url);
await mkdir(folder, { recursive: true });
for (const [name, text] of await referencePages()) await writeFile(new URL(name, folder), text);
