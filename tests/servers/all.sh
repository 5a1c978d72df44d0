#!/usr/bin/env bash
# All servers at once.
#   all.sh install [NAME ...]   downloads and builds what these servers need (mariadb mysql redis kafka kafka-3.9
#                               elasticsearch elasticsearch-8 tools; none named: everything)
#   all.sh status | down | kill | wipe   the verb, for every instance in this checkout's folder of servers
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
SERVICES=${MYSYNC_SERVICES:-$(cd "$HERE/../.." && pwd)/.cache/servers}
failed=''

install() {
  case $1 in
    mariadb | mysql | redis | kafka | elasticsearch) "$HERE/$1.sh" install ;;
    redis-cluster) "$HERE/redis.sh" install ;;
    mariadb-11.8) MARIADB_VERSION=11.8 "$HERE/mariadb.sh" install ;;
    kafka-3.9) KAFKA_VERSION=3.9.1 "$HERE/kafka.sh" install ;;
    elasticsearch-8) ES_VERSION=8.19.21 "$HERE/elasticsearch.sh" install ;;
    tools) "$HERE/tools.sh" promtool kcat >/dev/null ;;
    *) echo "all.sh: no server '$1'" >&2 && return 2 ;;
  esac
}

unset INSTANCE PART MARIADB_VERSION KAFKA_VERSION ES_VERSION NODES REPLICAS REPLICA_OF
verb=${1:-}
case $verb in
  install)
    shift
    [ $# -gt 0 ] || set -- mariadb mariadb-11.8 mysql redis kafka kafka-3.9 elasticsearch elasticsearch-8 tools
    for name; do install "$name" || failed+=" $name"; done
    ;;
  status | down | kill | wipe)
    for folder in "$SERVICES"/*/instances/*/; do
      [ -d "$folder" ] || continue
      instance=$(basename "$folder")
      name=$(basename "$(dirname "$(dirname "$folder")")")
      [ "$verb" != status ] || echo -n "$name $instance: "
      INSTANCE=$instance "$HERE/$name.sh" "$verb" || failed+=" $name/$instance"
    done
    ;;
  *)
    echo "usage: all.sh install [NAME ...] | status | down | kill | wipe" >&2
    exit 2
    ;;
esac
[ -z "$failed" ] || { echo "all.sh: $verb failed for$failed" >&2 && exit 1; }
