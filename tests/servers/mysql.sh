#!/usr/bin/env bash
# A private MySQL (Debian sid's, 9.7 at this writing), unpacked into a folder with its own newer libc, not installed.
# Row format, full row image, full row metadata, GTID. REPLICA_OF=port makes it a replica of that instance.
# Options after -- go to mysqld. One more verb: `mysql.sh sql -- ARGS` runs the client as root.
NAME=mysql
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

PREFIX=$ROOT/prefix

settings() { # the port is unique for each instance
  SERVER_ID=$PORT
  SOCKET=$(socket_path)
}

install() { # sid moves on: what has been unpacked stays until the folder is removed
  unpack_debs "$PREFIX" sid mysql-server-core mysql-client-core mysql-client
}

run() { # run PATH ARGS: one of the unpacked programs, through the loader that fits its libc
  local program=$1 loader
  shift
  mapfile -t loader < <(loader "$PREFIX" mysql/private)
  "${loader[@]}" "$PREFIX/usr/$program" --no-defaults "$@"
}

sql() { run bin/mysql -uroot -S "$SOCKET" --default-character-set=utf8mb4 "$@"; }
ready() { run bin/mysqladmin -uroot -S "$SOCKET" --connect-timeout=5 ping >/dev/null 2>&1; }

start() {
  local loader base=(--basedir="$PREFIX/usr" --datadir="$RUN/data" --user="$(id -un)"
    --lc-messages-dir="$PREFIX/usr/share/mysql" --character-sets-dir="$PREFIX/usr/share/mysql/charsets"
    --plugin-dir="$PREFIX/usr/lib/mysql/plugin")
  mapfile -t loader < <(loader "$PREFIX" mysql/private)
  if [ ! -f "$RUN/initialized" ]; then
    rm -rf "$RUN/data"
    mkdir -p "$RUN/data"
    run sbin/mysqld "${base[@]}" --initialize-insecure >"$RUN/init.log" 2>&1 || { tail -n 20 "$RUN/init.log" >&2 && return 1; }
    touch "$RUN/initialized"
  fi
  alive server || rm -f "$SOCKET" "$SOCKET.lock" # after a kill, its lock names a pid that may be another process by now
  alive server || spawn server "${loader[@]}" "$PREFIX/usr/sbin/mysqld" --no-defaults \
    "${base[@]}" --port="$PORT" --bind-address=127.0.0.1 --mysqlx=OFF --socket="$SOCKET" --pid-file="$RUN/data/server.pid" \
    --secure-file-priv= --server-id="$SERVER_ID" --log-bin=binlog --log-replica-updates=ON --binlog-format=ROW \
    --binlog-row-image=FULL --binlog-row-metadata=FULL --gtid-mode=ON --enforce-gtid-consistency=ON \
    --innodb-flush-log-at-trx-commit=2 --sync-binlog=0 --innodb-buffer-pool-size=256M --max-allowed-packet=64M \
    "${OPTIONS[@]}"
  wait_for server 120 ready
  # not in the binlog: so a replica has no transactions of its own, and a test's binlog begins empty
  sql -e "SET sql_log_bin=0; CREATE USER IF NOT EXISTS mysync@'%' IDENTIFIED BY 'mysync';
    GRANT ALL ON *.* TO mysync@'%' WITH GRANT OPTION"
  [ -z "${REPLICA_OF:-}" ] || replicate
}

replicate() {
  sql -e "STOP REPLICA; CHANGE REPLICATION SOURCE TO source_host='127.0.0.1', source_port=$REPLICA_OF, source_user='mysync',
    source_password='mysync', source_connect_retry=1, source_auto_position=1, get_source_public_key=1; START REPLICA"
  wait_for server 30 replicating
}

replicating() { [ "$(sql -E -e 'SHOW REPLICA STATUS' | grep -cE 'Replica_(IO|SQL)_Running: Yes')" = 2 ]; }

vars() {
  local version
  version=$(sql -N -e 'SELECT VERSION()')
  echo "MYSQL_HOST=127.0.0.1 MYSQL_PORT=$PORT MYSQL_USER=mysync MYSQL_PASSWORD=mysync MYSQL_SOCKET=$SOCKET" \
    "MYSQL_FLAVOR=mysql MYSQL_VERSION=${version%%-*}"
}

verb_sql() { sql "${OPTIONS[@]}"; }

main "$@"
