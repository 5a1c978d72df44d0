/** False when the sleep was cut short by the signal. */
export async function pause(sleep: Promise<void>, signal: AbortSignal): Promise<boolean> {
  try {
    await sleep;
    return !signal.aborted;
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}
