#!/usr/bin/env bash
# A Redis Cluster of 3 masters; REPLICAS=1 adds a replica to each. The programs are those of redis.sh.
# Options after -- go to each redis-server. PART='n2 ...' narrows a verb to these nodes.
# One more verb: `redis-cluster.sh cli -- ARGS` runs redis-cli against the cluster.
NAME=redis-cluster
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# shellcheck disable=SC2034 # read by lib.sh
PROGRAMS=redis
PREFIX=$SERVICES/redis/prefix

settings() {
  setting REPLICAS 0
  PARTS=(n1 n2 n3)
  [ "$REPLICAS" = 0 ] || PARTS+=(n4 n5 n6)
}

port() { echo $((PORT + ${1#n} - 1)); } # port PART
ports_of() { echo "$(port "$1") $((PORT + ${1#n} + 9))"; }

install() { unpack_debs "$PREFIX" "$(release)" redis-server redis-tools; }

run() { LD_LIBRARY_PATH=$PREFIX/usr/lib/$MULTIARCH "$PREFIX/usr/bin/$1" "${@:2}"; }
cli() { run redis-cli -p "$(port "${PARTS[0]}")" "$@"; }
node() { LD_LIBRARY_PATH=$PREFIX/usr/lib/$MULTIARCH timeout 5 "$PREFIX/usr/bin/redis-cli" -p "$(port "$1")" "${@:2}" 2>/dev/null; }
answers() { [ "$(node "$1" ping)" = PONG ]; }

# Every node sees a whole cluster, and a replica has its master's data: before that it cannot take over.
ready() {
  local part
  for part in "${PARTS[@]}"; do
    [[ $(node "$part" cluster info) == *cluster_state:ok* ]] || return 1
    [[ $(node "$part" info replication) =~ role:master|master_link_status:up ]] || return 1
  done
}

start() {
  local part nodes=()
  for part in "${PARTS[@]}"; do
    mkdir -p "$RUN/$part"
    nodes+=("127.0.0.1:$(port "$part")")
    alive "$part" || LD_LIBRARY_PATH=$PREFIX/usr/lib/$MULTIARCH spawn "$part" "$PREFIX/usr/bin/redis-server" \
      --port "$(port "$part")" --bind 127.0.0.1 --dir "$RUN/$part" --save '' --appendonly yes --daemonize no \
      --cluster-enabled yes --cluster-port $(($(port "$part") + 10)) --cluster-node-timeout 3000 "${OPTIONS[@]}"
  done
  for part in "${PARTS[@]}"; do wait_for "$part" 30 answers "$part"; done
  if [ ! -f "$RUN/created" ]; then
    [ "${PARTS[*]}" = "${ALL_PARTS[*]}" ] || die 'the first up must be of all nodes'
    cli --cluster create "${nodes[@]}" --cluster-replicas "$REPLICAS" --cluster-yes >"$RUN/create.log" 2>&1 ||
      { tail -n 20 "$RUN/create.log" >&2 && return 1; }
    touch "$RUN/created"
  fi
  wait_for "${PARTS[0]}" 60 ready
}

vars() {
  local part nodes=() list version
  for part in "${ALL_PARTS[@]}"; do nodes+=("127.0.0.1:$(port "$part")"); done
  list=$(IFS=,; echo "${nodes[*]}")
  version=$(run redis-server --version | sed 's/.* v=\([0-9.]*\).*/\1/')
  echo "REDIS_CLUSTER_NODES=$list REDIS_CLUSTER_REPLICAS=$REPLICAS REDIS_VERSION=$version"
}

verb_cli() { cli -c "${OPTIONS[@]}"; }

main "$@"
