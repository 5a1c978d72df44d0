#!/usr/bin/env bash
# Apache Kafka brokers (KRaft, each its own controller) from Maven artifacts.
# KAFKA_VERSION: 4.1.1, or 3.9.1. NODES: 1, or 3 (replication factor 3, min.insync.replicas 2, unclean election off).
# ADVERTISED_PORTS: 'P1 P2 P3', the ports of proxies in front of the nodes: a second listener of each node, which vars prints as
# KAFKA_ADVERTISED_LISTENERS, tells its clients to connect there; brokers among themselves, and KAFKA_BROKERS, go without.
# Options after -- are key=value lines for server.properties. PART='n2 ...' narrows a verb to these nodes.
# The log cleaner runs every second, so a topic with short segments is compacted within seconds.
NAME=kafka
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

settings() {
  setting KAFKA_VERSION 4.1.1
  setting NODES 1
  setting ADVERTISED_PORTS ''
  LIB=$ROOT/$KAFKA_VERSION
  PARTS=(n1)
  [ "$NODES" = 1 ] || PARTS=(n1 n2 n3)
}

port() { echo $((PORT + ${1#n} - 1)); }            # port PART: where clients connect
advertised_port() { echo $((PORT + ${1#n} + 4)); } # advertised_port PART: the listener behind the proxy
controller_port() { echo $((PORT + ${1#n} + 9)); } # controller_port PART
ports_of() { echo "$(port "$1") $(controller_port "$1")"; }

install() {
  local logging=org.apache.logging.log4j:log4j-slf4j-impl:2.24.3
  [[ $KAFKA_VERSION == 4.* ]] || logging=org.slf4j:slf4j-reload4j:1.7.36
  maven_jars "$LIB" "org.apache.kafka:kafka_2.13:$KAFKA_VERSION" "$logging"
  cat >"$LIB/log4j.properties" <<-'END'
	log4j.rootLogger=WARN, C
	log4j.appender.C=org.apache.log4j.ConsoleAppender
	log4j.appender.C.layout=org.apache.log4j.PatternLayout
	log4j.appender.C.layout.ConversionPattern=%d %p %m (%c{1})%n
	END
  cat >"$LIB/log4j2.properties" <<-'END'
	rootLogger.level=warn
	rootLogger.appenderRef.c.ref=C
	appender.c.type=Console
	appender.c.name=C
	appender.c.layout.type=PatternLayout
	appender.c.layout.pattern=%d %p %m (%c{1})%n
	END
}

configure() { # configure PART: writes its server.properties
  local node voters=() name replicas=1 insync=1 listener='' advertised='' ports
  if [ -n "$ADVERTISED_PORTS" ]; then
    read -r -a ports <<<"$ADVERTISED_PORTS"
    listener=,PROXIED://127.0.0.1:$(advertised_port "$1")
    advertised=,PROXIED://127.0.0.1:${ports[${1#n} - 1]}
  fi
  for node in n1 n2 n3; do
    [ "$NODES" = 1 ] && [ "$node" != n1 ] || voters+=("${node#n}@127.0.0.1:$(controller_port "$node")")
  done
  [ "$NODES" = 1 ] || { replicas=3 && insync=2; }
  name=$(IFS=,; echo "${voters[*]}")
  cat <<-END
	process.roles=broker,controller
	node.id=${1#n}
	controller.quorum.voters=$name
	listeners=PLAINTEXT://127.0.0.1:$(port "$1"),CONTROLLER://127.0.0.1:$(controller_port "$1")$listener
	advertised.listeners=PLAINTEXT://127.0.0.1:$(port "$1")$advertised
	controller.listener.names=CONTROLLER
	inter.broker.listener.name=PLAINTEXT
	listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,PROXIED:PLAINTEXT
	log.dirs=$RUN/$1
	auto.create.topics.enable=false
	num.partitions=1
	default.replication.factor=$replicas
	min.insync.replicas=$insync
	unclean.leader.election.enable=false
	offsets.topic.num.partitions=1
	offsets.topic.replication.factor=$replicas
	transaction.state.log.num.partitions=1
	transaction.state.log.replication.factor=$replicas
	transaction.state.log.min.isr=$insync
	group.initial.rebalance.delay.ms=0
	broker.session.timeout.ms=3000
	broker.heartbeat.interval.ms=500
	leader.imbalance.check.interval.seconds=5
	log.cleaner.backoff.ms=1000
	log.cleaner.dedupe.buffer.size=16777216
	log.initial.task.delay.ms=1000
	log.retention.check.interval.ms=5000
	num.network.threads=2
	num.io.threads=4
	background.threads=2
	END
  printf '%s\n' "${OPTIONS[@]}"
}

# An ApiVersions request; a broker answers once the controllers have let it in.
answers() { ask "$(port "$1")" '\0\0\0\x0a\0\x12\0\0\0\0\0\x01\xff\xff'; }

ready() {
  local part
  for part in "${PARTS[@]}"; do answers "$part" || return 1; done
}

start() {
  local part java logging heap=${KAFKA_HEAP:-512m} quick=()
  # several share the machine and are killed and started all the time: at its full effort the compiler is half of a start's CPU
  [ "$NODES" = 1 ] || { heap=${KAFKA_HEAP:-256m} && quick=(-XX:TieredStopAtLevel=1); }
  java=$(find_java 17)
  logging=(-Dlog4j.configuration="file:$LIB/log4j.properties" -Dlog4j2.configurationFile="$LIB/log4j2.properties")
  for part in "${PARTS[@]}"; do
    ! alive "$part" || continue
    configure "$part" >"$RUN/$part.properties"
    [ -f "$RUN/$part/meta.properties" ] ||
      "$java" -XX:TieredStopAtLevel=1 "${logging[@]}" -cp "$LIB/*" kafka.tools.StorageTool format \
        -t bXlzeW5jLXNlcnZpY2VzAA -c "$RUN/$part.properties" >"$RUN/$part.format.log" 2>&1 ||
      { tail -n 20 "$RUN/$part.format.log" >&2 && return 1; }
    spawn "$part" "$java" "-Xms$heap" "-Xmx$heap" -XX:+UseSerialGC "${quick[@]}" "${logging[@]}" -cp "$LIB/*" \
      kafka.Kafka "$RUN/$part.properties"
  done
  for part in "${PARTS[@]}"; do wait_for "$part" 180 answers "$part"; done
}

vars() {
  local part brokers=() proxied=() list
  for part in "${ALL_PARTS[@]}"; do
    brokers+=("127.0.0.1:$(port "$part")")
    proxied+=("127.0.0.1:$(advertised_port "$part")")
  done
  list=$(IFS=,; echo "${brokers[*]}")
  echo "KAFKA_BROKERS=$list KAFKA_VERSION=$KAFKA_VERSION KAFKA_NODES=$NODES" \
    "${ADVERTISED_PORTS:+KAFKA_ADVERTISED_LISTENERS=$(IFS=,; echo "${proxied[*]}")}"
}

main "$@"
