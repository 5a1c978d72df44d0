/**
 * Errors of a MySQL, MariaDB or Galera server that pass by themselves, whatever the statement was, by number (the servers' error message
 * references): the same statement over a new connection may succeed. What is refused for good, and what only a statement that writes
 * can meet (a full disk, a server that is read-only for now), is not among them.
 */
export const PASSING_MYSQL_ERRORS: ReadonlySet<number> = new Set([
  1020, // the row changed since the view was made (MariaDB with innodb_snapshot_isolation)
  1037, // out of memory
  1040, // too many connections
  1041, // out of memory, or of other resources of the system
  1047, // a Galera node that is not (yet, any more) part of its cluster
  1053, // shutdown in progress
  1077, // a normal shutdown
  1079, // shutdown complete
  1152, // aborted connection
  1158, // reading a packet failed, and the three next: interrupted, writing, interrupted
  1159,
  1160,
  1161,
  1180, // the commit failed: the cause is not the statement's
  1184, // aborted connection
  1203, // too many connections of this user
  1205, // lock wait timeout
  1206, // no room for another lock
  1213, // deadlock
  1226, // this user has no connection left, or no statement in this hour
  1317, // interrupted (KILL QUERY, a shutdown)
  1927, // connection was killed (MariaDB)
  1969, // max_statement_time (MariaDB)
  3024, // max_execution_time (MySQL)
  3169, // session was killed (MySQL)
]);
