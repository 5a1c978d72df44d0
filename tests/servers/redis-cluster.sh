#!/usr/bin/env bash
# A Redis Cluster of 3 masters; REPLICAS=1 adds a replica to each. The programs are those of redis.sh.
# ADVERTISED_PORTS: 'P1 P2 ...', the ports of proxies in front of the nodes: clients, and replicas of their masters, are told to
# connect there (vars prints them as REDIS_CLUSTER_ANNOUNCED); nodes among themselves, and REDIS_CLUSTER_NODES, go without.
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
  setting ADVERTISED_PORTS ''
  PARTS=(n1 n2 n3)
  [ "$REPLICAS" = 0 ] || PARTS+=(n4 n5 n6)
}

port() { echo $((PORT + ${1#n} - 1)); } # port PART
announced_port() { # announced_port PART: where its clients are told to connect
  local ports
  read -r -a ports <<<"$ADVERTISED_PORTS"
  echo "${ports[${1#n} - 1]:-$(port "$1")}"
}
ports_of() { echo "$(port "$1") $((PORT + ${1#n} + 9))"; }

install() { unpack_debs "$PREFIX" "$(release)" redis-server redis-tools; }

run() { LD_LIBRARY_PATH=$PREFIX/usr/lib/$MULTIARCH "$PREFIX/usr/bin/$1" "${@:2}"; }
cli() { run redis-cli -p "$(port "${PARTS[0]}")" "$@"; }
node() { LD_LIBRARY_PATH=$PREFIX/usr/lib/$MULTIARCH timeout 5 "$PREFIX/usr/bin/redis-cli" -p "$(port "$1")" "${@:2}" 2>/dev/null; }
answers() { [ "$(node "$1" ping)" = PONG ]; }

# Every node sees a whole cluster.
joined() {
  local part
  for part in "${PARTS[@]}"; do [[ $(node "$part" cluster info) == *cluster_state:ok* ]] || return 1; done
}

# A replica has its master's data: before that it cannot take over.
replicated() {
  local part
  for part in "${PARTS[@]}"; do
    [[ $(node "$part" info replication) =~ role:master|master_link_status:up ]] || return 1
  done
}

# Every node tells where all are announced.
announced() {
  local part other view
  for part in "${PARTS[@]}"; do
    view=$(node "$part" cluster nodes)
    for other in "${ALL_PARTS[@]}"; do [[ $view == *":$(announced_port "$other")@"* ]] || return 1; done
  done
}

# Ways to masters that lead through proxies are for whoever put those there to open: replicas are not waited for then.
ready() { joined && { [ -n "$ADVERTISED_PORTS" ] || replicated; }; }

start() {
  local part nodes=() announce=()
  for part in "${PARTS[@]}"; do
    [ -z "$ADVERTISED_PORTS" ] || [ ! -f "$RUN/created" ] || announce=(--cluster-announce-port "$(announced_port "$part")")
    mkdir -p "$RUN/$part"
    nodes+=("127.0.0.1:$(port "$part")")
    alive "$part" || LD_LIBRARY_PATH=$PREFIX/usr/lib/$MULTIARCH spawn "$part" "$PREFIX/usr/bin/redis-server" \
      --port "$(port "$part")" --bind 127.0.0.1 --dir "$RUN/$part" --save '' --appendonly yes --daemonize no \
      --cluster-enabled yes --cluster-port $(($(port "$part") + 10)) --cluster-node-timeout 3000 "${announce[@]}" "${OPTIONS[@]}"
  done
  for part in "${PARTS[@]}"; do wait_for "$part" 30 answers "$part"; done
  if [ ! -f "$RUN/created" ]; then
    [ "${PARTS[*]}" = "${ALL_PARTS[*]}" ] || die 'the first up must be of all nodes'
    cli --cluster create "${nodes[@]}" --cluster-replicas "$REPLICAS" --cluster-yes >"$RUN/create.log" 2>&1 ||
      { tail -n 20 "$RUN/create.log" >&2 && return 1; }
    wait_for "${PARTS[0]}" 60 joined
    wait_for "${PARTS[0]}" 60 replicated
    touch "$RUN/created"
  fi
  if [ -n "$ADVERTISED_PORTS" ]; then
    for part in "${PARTS[@]}"; do node "$part" config set cluster-announce-port "$(announced_port "$part")" >/dev/null; done
    wait_for "${PARTS[0]}" 60 announced
  fi
  wait_for "${PARTS[0]}" 60 ready
}

vars() {
  local part nodes=() announced=() list version
  for part in "${ALL_PARTS[@]}"; do
    nodes+=("127.0.0.1:$(port "$part")")
    announced+=("127.0.0.1:$(announced_port "$part")")
  done
  list=$(IFS=,; echo "${nodes[*]}")
  version=$(run redis-server --version | sed 's/.* v=\([0-9.]*\).*/\1/')
  echo "REDIS_CLUSTER_NODES=$list REDIS_CLUSTER_REPLICAS=$REPLICAS REDIS_VERSION=$version" \
    "${ADVERTISED_PORTS:+REDIS_CLUSTER_ANNOUNCED=$(IFS=,; echo "${announced[*]}")}"
}

verb_cli() { cli -c "${OPTIONS[@]}"; }

main "$@"
