import { errorCatalogue } from '@mysync/core';

export const drillErrors = errorCatalogue({
  DRILL_TABLE_FOREIGN: {
    remedy:
      'Name a table (--table DATABASE.TABLE) that is not there yet: a drill only writes to a table that it has made.',
    retriable: false,
  },
  DRILL_TABLE_UNMAPPED: {
    remedy:
      'Name a table that the source captures and the sink maps (--table DATABASE.TABLE); patterns as in sources.NAME.tables and sinks.NAME.tables.',
    retriable: false,
  },
  DRILL_TABLE_DENIED: {
    remedy:
      'Name a table in a database that is there, and give the drill a user that may CREATE, DROP, SELECT, INSERT, UPDATE and DELETE it: --user NAME --password-file FILE.',
    retriable: false,
  },
  DRILL_NOTHING_CHANGED: {
    remedy:
      'Mend what keeps the table from being changed (the table is gone, the disk is full, the server is read-only or away; a plan must mend what it breaks), then drill again: a fault under which nothing changes proves nothing.',
    retriable: false,
  },
  DRILL_PROCESS_ENDED: {
    remedy: 'Its last lines say why. A reader of the same source that already runs must be stopped first.',
    retriable: false,
  },
  DRILL_COMMAND_FAILED: {
    remedy: 'Correct the command in the plan: it must end with 0 once it has broken, or mended, what it is for.',
    retriable: false,
  },
  DRILL_REPORT_UNWRITTEN: {
    remedy: 'The result is on standard output. Make the file writable, or its folder (--folder).',
    retriable: false,
  },
  DRILL_PLAN_INVALID: {
    remedy:
      'A plan is a JSON list of {"name", "break", "mend", "seconds"}: two shell commands, and how long the fault lasts.',
    retriable: false,
  },
});
