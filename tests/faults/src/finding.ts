import { until } from '@mysync/harness';

/** Speaks against MySync: thrown where the checker gives up waiting for what MySync has to do. Every other error that ends a run is the suite's own. */
export class Finding extends Error {
  override readonly name = 'Finding';
}

/** Waits for what MySync has to do. Not done in time: a Finding; a probe that could not look at the end: the suite's own error. */
export async function untilMysync<T>(
  what: string,
  probe: () => Promise<T | undefined | false> | T | undefined | false,
  options: { readonly timeoutMs?: number; readonly everyMs?: number } = {},
): Promise<T> {
  let looked = false;
  const look = async (): Promise<T | undefined | false> => {
    looked = false;
    const value = await probe();
    looked = true;
    return value;
  };
  try {
    return await until(what, look, options);
  } catch (error) {
    throw looked ? new Finding(`waited in vain: ${what}`) : error;
  }
}
