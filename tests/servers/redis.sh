#!/usr/bin/env bash
# A private Redis (the Debian release's own, 7.0 in bookworm), unpacked into a folder, not installed.
# It appends to a file, so data survives `kill`. Options after -- go to redis-server.
# One more verb: `redis.sh cli -- ARGS` runs redis-cli.
NAME=redis
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

PREFIX=$ROOT/prefix

install() { unpack_debs "$PREFIX" "$(release)" redis-server redis-tools; }

run() { LD_LIBRARY_PATH=$PREFIX/usr/lib/$MULTIARCH "$PREFIX/usr/bin/$1" "${@:2}"; }
cli() { run redis-cli -p "$PORT" "$@"; }
ready() { [ "$(LD_LIBRARY_PATH=$PREFIX/usr/lib/$MULTIARCH timeout 5 "$PREFIX/usr/bin/redis-cli" -p "$PORT" ping 2>/dev/null)" = PONG ]; }

start() {
  mkdir -p "$RUN/data"
  alive server || LD_LIBRARY_PATH=$PREFIX/usr/lib/$MULTIARCH spawn server "$PREFIX/usr/bin/redis-server" --port "$PORT" \
    --bind 127.0.0.1 --dir "$RUN/data" --save '' --appendonly yes --daemonize no "${OPTIONS[@]}"
  wait_for server 90 ready
}

vars() {
  local version
  version=$(run redis-server --version | sed 's/.* v=\([0-9.]*\).*/\1/')
  echo "REDIS_HOST=127.0.0.1 REDIS_PORT=$PORT REDIS_URL=redis://127.0.0.1:$PORT REDIS_VERSION=$version"
}

verb_cli() { cli "${OPTIONS[@]}"; }

main "$@"
