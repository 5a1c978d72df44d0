#!/usr/bin/env bash
# One Elasticsearch node from the server's own Maven artifacts. ES_VERSION: 9.5.3 (needs Java 21), or 8.19.21 (Java 17).
# ES_HEAP: of the Java process, 512m.
# Options after -- are settings as key=value. No x-pack: no security, no licence, no lifecycle management.
NAME=elasticsearch
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

SOURCES=$HERE/elasticsearch

settings() {
  setting ES_VERSION 9.5.3
  ES_HEAP=${ES_HEAP:-512m}
  HOME_FOLDER=$ROOT/$ES_VERSION
  LIB=$HOME_FOLDER/lib
  JAVA_RELEASE=21
  [[ $ES_VERSION != 8.* ]] || JAVA_RELEASE=17
}

ports_of() { echo "$PORT $((PORT + 1))"; }

install() {
  local java what modules=$HOME_FOLDER/modules/transport-netty4 plugin=$HOME_FOLDER/plugins/greeting
  java=$(find_java $JAVA_RELEASE javac)
  # built anew when our sources change
  what=$(cat "$SOURCES"/*.java "$SOURCES/v${ES_VERSION%%.*}"/*.java | sha256sum)
  ! installed "$HOME_FOLDER" "$what" || return 0
  maven_jars "$LIB" "org.elasticsearch:elasticsearch:$ES_VERSION" "org.elasticsearch.plugin:transport-netty4:$ES_VERSION"
  # the transport is a module, with a class loader of its own: its jars move out of the common class path
  mkdir -p "$modules" "$plugin" "$HOME_FOLDER/classes"
  mv "$LIB"/netty-*.jar "$LIB"/transport-netty4-*.jar "$LIB"/elasticsearch-ssl-config-*.jar "$modules/"
  (cd "$modules" && "$(dirname "$java")/jar" --extract --file "transport-netty4-$ES_VERSION.jar" META-INF/es-plugins/transport-netty4)
  mv "$modules"/META-INF/es-plugins/transport-netty4/* "$modules/"
  rm -r "$modules/META-INF"
  sed -i '/^modulename/d' "$modules/plugin-descriptor.properties"
  "$(dirname "$java")/javac" --release $JAVA_RELEASE -nowarn -cp "$LIB/*" -d "$HOME_FOLDER/classes" \
    "$SOURCES/SearchNode.java" "$SOURCES/v${ES_VERSION%%.*}/Bundles.java"
  "$(dirname "$java")/javac" --release $JAVA_RELEASE -nowarn -cp "$LIB/*" -d "$plugin/classes" \
    "$SOURCES/GreetingHandler.java" "$SOURCES/v${ES_VERSION%%.*}/GreetingPlugin.java"
  "$(dirname "$java")/jar" --create --file "$plugin/greeting.jar" -C "$plugin/classes" .
  rm -r "$plugin/classes"
  cat >"$plugin/plugin-descriptor.properties" <<-END
	description=GET /
	name=greeting
	version=1
	classname=GreetingPlugin
	java.version=$JAVA_RELEASE
	elasticsearch.version=$ES_VERSION
	END
  echo "$what" >"$HOME_FOLDER/.done"
}

ready() { http_ok "$PORT" '/_cluster/health?wait_for_status=yellow&timeout=1s'; }

start() {
  local java
  java=$(find_java $JAVA_RELEASE javac)
  mkdir -p "$RUN"/{config,data,logs,tmp}
  alive server || spawn server "$java" -Xms$ES_HEAP -Xmx$ES_HEAP -XX:+UseSerialGC -Djava.io.tmpdir="$RUN/tmp" \
    --add-opens java.base/java.lang=ALL-UNNAMED --enable-native-access=ALL-UNNAMED \
    -Dorg.elasticsearch.nativeaccess.enableVectorLibrary=false \
    -cp "$HOME_FOLDER/classes:$LIB/*" SearchNode "$RUN/config" path.home="$HOME_FOLDER" path.data="$RUN/data" \
    path.logs="$RUN/logs" cluster.name=mysync node.name=n1 discovery.type=single-node \
    http.host=127.0.0.1 http.port="$PORT" transport.host=127.0.0.1 transport.port=$((PORT + 1)) \
    transport.type=netty4 http.type=netty4 cluster.routing.allocation.disk.threshold_enabled=false "${OPTIONS[@]}"
  wait_for server 180 ready
}

vars() { echo "ELASTICSEARCH_URL=http://127.0.0.1:$PORT ELASTICSEARCH_VERSION=$ES_VERSION"; }

main "$@"
