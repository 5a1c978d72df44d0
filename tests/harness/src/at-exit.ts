const stops = new Set<() => void>();
let listens = false;

/**
 * `stop` runs when this process exits, by `process.exit` or by an error that nobody caught, so that what it stops does not outlive us. It must be synchronous.
 * What was made last is stopped first. A signal that nobody handles, and SIGKILL, end a process without it. Gives what takes it back.
 */
export function stopAtExit(stop: () => void): () => void {
  if (!listens) process.once('exit', stopAll);
  listens = true;
  stops.add(stop);
  return () => void stops.delete(stop);
}

function stopAll(): void {
  for (const stop of [...stops].reverse()) {
    try {
      stop();
    } catch {
      // the others are to be stopped all the same, and nobody is left to be told
    }
  }
}
