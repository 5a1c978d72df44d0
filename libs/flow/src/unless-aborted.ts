/**
 * What the promise gives; rejects with the signal's reason as soon as the signal aborts. For calls that know no signal and may
 * take long: they go on unobserved, and what they give too late goes to `late`, which closes it. Their late failure tells nobody anything.
 */
export async function unlessAborted<T>(
  promise: Promise<T>,
  signal: AbortSignal,
  late: (value: T) => Promise<void> = async () => undefined,
): Promise<T> {
  let onAbort = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = (): void => {
      promise.then(late).catch(() => undefined);
      reject(signal.reason);
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([aborted, promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
