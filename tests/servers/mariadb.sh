#!/usr/bin/env bash
# A private MariaDB, unpacked into a folder, not installed. MARIADB_VERSION: 10.11 (bookworm's), or 11.8 (trixie's, with its own newer libc).
# Row format, full row image, full row metadata, GTID. REPLICA_OF=port makes it a replica of that instance.
# Options after -- go to mariadbd. One more verb: `mariadb.sh sql -- ARGS` runs the client as root.
NAME=mariadb
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

settings() { # the port is unique for each instance; the server id is what makes a replica differ from its primary
  setting MARIADB_VERSION 10.11
  case $MARIADB_VERSION in
    10.11) PREFIX=$ROOT/prefix SUITE=bookworm ;;
    11.8) PREFIX=$ROOT/prefix-11.8 SUITE=trixie ;;
    *) die "MARIADB_VERSION=$MARIADB_VERSION: 10.11 or 11.8" ;;
  esac
  LIBRARIES=(LD_LIBRARY_PATH="$PREFIX/usr/lib/$MULTIARCH")
  [ "$SUITE" = "$(release)" ] || LIBRARIES=() # its programs bring their own (own_libc), the shells that call them must not get it
  SERVER_ID=$PORT
  SOCKET=$(socket_path)
}

install() {
  local program
  unpack_debs "$PREFIX" "$SUITE" mariadb-server-core mariadb-server mariadb-client-core mariadb-client
  [ "$SUITE" != "$(release)" ] || return 0
  for program in sbin/mariadbd bin/mariadb bin/mariadb-admin bin/my_print_defaults bin/resolveip; do own_libc "$PREFIX/usr/$program"; done
}

# own_libc PROGRAM: whoever calls it, also the server's own installation script, gets it with the libc unpacked beside it
own_libc() {
  local loader
  [ ! -e "$1.elf" ] || return 0
  mapfile -t loader < <(loader "$PREFIX")
  {
    echo '#!/bin/sh'
    # shellcheck disable=SC2016 # expanded when the program is called
    echo 'prefix=$(dirname "$0")/../..'
    echo "exec ${loader[*]//$PREFIX/\"\$prefix\"} \"\$0.elf\" \"\$@\""
  } >"$1.new"
  chmod +x "$1.new"
  mv "$1" "$1.elf"
  mv "$1.new" "$1"
}

run() { # run PROGRAM ARGS: one of the unpacked programs
  local program=$1
  shift
  PATH=$PREFIX/usr/sbin:$PREFIX/usr/bin:$PATH env "${LIBRARIES[@]}" "$program" --no-defaults "$@"
}

sql() { run mariadb -uroot -S "$SOCKET" --default-character-set=utf8mb4 "$@"; }
ready() { run mariadb-admin -uroot -S "$SOCKET" --connect-timeout=5 ping >/dev/null 2>&1; }

start() {
  # a server that starts removes the temporary tables that it finds in its folder: also those of another that runs
  local base=(--basedir="$PREFIX/usr" --datadir="$RUN/data" --tmpdir="$RUN/tmp" --user="$(id -un)")
  mkdir -p "$RUN/tmp"
  if [ ! -f "$RUN/initialized" ]; then
    rm -rf "$RUN/data"
    mkdir -p "$RUN/data"
    run mariadb-install-db "${base[@]}" --auth-root-authentication-method=normal --skip-test-db >"$RUN/init.log" 2>&1 ||
      { tail -n 20 "$RUN/init.log" >&2 && return 1; }
    touch "$RUN/initialized"
  fi
  alive server || spawn server env "${LIBRARIES[@]}" "$PREFIX/usr/sbin/mariadbd" --no-defaults "${base[@]}" \
    --plugin-dir="$PREFIX/usr/lib/mysql/plugin" --lc-messages-dir="$PREFIX/usr/share/mysql" \
    --character-sets-dir="$PREFIX/usr/share/mysql/charsets" --port="$PORT" --bind-address=127.0.0.1 \
    --socket="$SOCKET" --pid-file="$RUN/data/server.pid" --server-id="$SERVER_ID" --log-bin=binlog --log-slave-updates=ON \
    --binlog-format=ROW --binlog-row-image=FULL --binlog-row-metadata=FULL --gtid-domain-id=0 --gtid-strict-mode=ON \
    --innodb-flush-log-at-trx-commit=2 --sync-binlog=0 --innodb-buffer-pool-size=256M --max-allowed-packet=64M \
    "${OPTIONS[@]}"
  wait_for server 120 ready
  # not in the binlog: so a replica has no transactions of its own, and a test's binlog begins empty
  sql -e "SET sql_log_bin=0; CREATE USER IF NOT EXISTS mysync@'%' IDENTIFIED BY 'mysync';
    GRANT ALL ON *.* TO mysync@'%' WITH GRANT OPTION"
  [ -z "${REPLICA_OF:-}" ] || replicate
}

replicate() {
  sql -e "STOP SLAVE; CHANGE MASTER TO master_host='127.0.0.1', master_port=$REPLICA_OF, master_user='mysync',
    master_password='mysync', master_connect_retry=1, master_use_gtid=slave_pos; START SLAVE"
  wait_for server 30 replicating
}

replicating() { [ "$(sql -E -e 'SHOW SLAVE STATUS' | grep -cE 'Slave_(IO|SQL)_Running: Yes')" = 2 ]; }

vars() {
  local version
  version=$(sql -N -e 'SELECT VERSION()')
  echo "MYSQL_HOST=127.0.0.1 MYSQL_PORT=$PORT MYSQL_USER=mysync MYSQL_PASSWORD=mysync MYSQL_SOCKET=$SOCKET" \
    "MYSQL_FLAVOR=mariadb MYSQL_VERSION=${version%%-*}"
}

verb_sql() { sql "${OPTIONS[@]}"; }

main "$@"
