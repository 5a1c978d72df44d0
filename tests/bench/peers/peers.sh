#!/usr/bin/env bash
# Builds the clients in other languages that the decoder is compared with, and prints how to start one, a word a line:
#   peers.sh go-mysql | java-client
# Exit status 3 and one line on standard error: its toolchain is not on this machine.
NAME=bench-peers
# shellcheck source=../../servers/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../servers/lib.sh"

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
CONNECTOR=io.debezium:mysql-binlog-connector-java:0.40.6

missing() { echo "$*" >&2; exit 3; }

# sum_of FILE...: changes when one of them does
sum_of() { cat "$@" | sha256sum | cut -d' ' -f1; }

go_mysql() {
  local go folder=$ROOT/go-mysql what
  go=$(command -v go || command -v /usr/local/go/bin/go) || missing 'no go in PATH or /usr/local/go/bin'
  what=$(sum_of "$HERE"/go-mysql/*)
  if ! installed "$folder" "$what"; then
    (cd "$HERE/go-mysql" && nice "$go" build -o "$folder/reader" .) >"$folder/build.log" 2>&1 ||
      die "go build failed: $(tail -n 1 "$folder/build.log")"
    echo "$what" >"$folder/.done"
  fi
  echo "$folder/reader"
}

java_client() {
  local java folder=$ROOT/java-client what
  command -v mvn >/dev/null || missing 'no mvn in PATH'
  java=$(command -v java) || missing 'no java in PATH'
  [ -x "$(command -v javac)" ] || missing 'no javac in PATH'
  maven_jars "$folder/jars" "$CONNECTOR" >&2
  what=$(sum_of "$HERE"/java-client/*)
  if ! installed "$folder/classes" "$what"; then
    javac -cp "$folder/jars/*" -d "$folder/classes" "$HERE"/java-client/*.java >&2 || die 'javac failed'
    echo "$what" >"$folder/classes/.done"
  fi
  printf '%s\n' "$java" -Xmx512m -cp "$folder/classes:$folder/jars/*" LogReader
}

mkdir -p "$ROOT"
exec 9>"$SERVICES/locks/$NAME"
flock 9
case ${1:-} in
  go-mysql) go_mysql ;;
  java-client) java_client ;;
  *) die 'usage: peers.sh go-mysql | java-client' ;;
esac
