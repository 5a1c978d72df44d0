/**
 * Waits until `probe` returns something other than undefined or false: asks again every `everyMs`, for tests that wait for another
 * process. Throws after `timeoutMs` with the last error or `what`.
 */
export async function until<T>(
  what: string,
  probe: () => Promise<T | undefined | false> | T | undefined | false,
  options: { timeoutMs?: number; everyMs?: number } = {},
): Promise<T> {
  const end = performance.now() + (options.timeoutMs ?? 60_000);
  let last: unknown;
  for (;;) {
    try {
      const value = await probe();
      if (value !== undefined && value !== false) return value;
      last = undefined;
    } catch (error) {
      last = error;
    }
    if (performance.now() > end) throw new Error(`waited in vain: ${what}`, { cause: last });
    await new Promise((resolve) => setTimeout(resolve, options.everyMs ?? 50));
  }
}
