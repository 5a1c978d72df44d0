import { errorCatalogue } from '@mysync/core';

/** Errors that every sink raises alike. Errors of one sink alone stand in its own catalogue. */
export const sinkErrors = errorCatalogue({
  SINK_UNREACHABLE: {
    remedy:
      'Check that the address is that of such a store, that it runs, and that it can be reached from here. A writer goes on trying; nothing is lost.',
    retriable: true,
  },
  SINK_OVERLOADED: {
    remedy: 'The store refuses work for now; the writer goes on trying with longer pauses.',
    retriable: true,
  },
  SINK_DENIED: {
    remedy:
      'Check the user, the password and the rights of the sink. Where the store is right already (it had not read its users yet, the rights were given back), nothing: the writer goes on trying. Other credentials need a restart of the writer. Nothing is lost.',
    retriable: true,
  },
  SINK_TLS_FAILED: {
    remedy:
      "The certificate that the store shows is not trusted. Set the sink's tls.ca to the authority that vouches for it, and name the store as the certificate does (or tls.verify: false, which takes any). Then restart the writer.",
    retriable: false,
  },
  SINK_WRONG_TYPE: {
    remedy:
      'Something else stands at the key of the row, of its version or of an index. Move it away or change the key template, then restart the writer; `mysync dlq retry` where the row was parked.',
    retriable: false,
  },
  SINK_VALUE_REFUSED: {
    remedy: 'Mend the value, the mapping or the index, then restart the writer: it resumes at this change.',
    retriable: false,
  },
  SINK_MARKER_INVALID: {
    remedy:
      'Something that is not of MySync stands where the applied marker belongs; the message names the place. Move it away and rebuild the sink (docs/runbook/start-again.md), or put the marker back as it was; then restart the writer.',
    retriable: false,
  },
});
