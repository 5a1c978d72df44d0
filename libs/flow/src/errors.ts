import { errorCatalogue } from '@mysync/core';

export const flowErrors = errorCatalogue({
  FLOW_TAIL_INVALID: {
    remedy:
      'Checkpoint and log do not belong together: put the checkpoint back that was saved last for this topic, or start with a new topic and a snapshot.',
    retriable: false,
  },
  FLOW_QUEUE_CLOSED: {
    remedy:
      'The consumer of a queue stopped before its producer: look for the error that stopped it, logged just before.',
    retriable: false,
  },
});
