import { closeSync } from 'node:fs';
import { causeText, type Finding } from '@mysync/core';
import { openUnlinked } from '../stream/transaction-spool.ts';
import { finding } from './settings.ts';

/** A folder in which no file can be made would be found by the first large transaction only. */
export function checkSpoolFolder(folder: string): Finding[] {
  try {
    closeSync(openUnlinked(folder));
    return [];
  } catch (error) {
    const message = `no file can be made in the spool folder ${folder}: ${causeText(error)}`;
    const remedy = 'Set spoolFolder to a folder in which this user can make files.';
    return [finding('error', 'SOURCE_SPOOL_FAILED', message, remedy)];
  }
}
