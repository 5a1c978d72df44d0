const YEAR_SECONDS = 31_536_000;

/**
 * For a session that reads many rows: whoever takes them may pause for as long as it needs (a sink that is slow, changes that are waited for), amid a
 * result or between two statements, and the server must not hang up.
 */
export const READING_SESSION = `SET SESSION time_zone = '+00:00', SESSION sql_mode = '', SESSION net_write_timeout = ${YEAR_SECONDS}, SESSION wait_timeout = ${YEAR_SECONDS}`;
