# shellcheck shell=bash
# What the server scripts share: folders, verbs, locks, ports, processes and installation.
#
# A script sets NAME, sources this file, defines the functions below and ends with `main "$@"`.
#   settings       optional: variables an instance keeps (`setting`), and PARTS, the names of its processes
#   install        downloads and builds what is missing; runs under a lock; quick when nothing is missing
#   start          starts every part of PARTS that is not alive, and waits until each one answers
#   ready          one real request, no waiting
#   vars           prints one line of KEY=value pairs
#   ports_of PART  optional: the ports a part listens on (PORT, unless defined)
#   verb_X         optional: one more verb, X
set -euo pipefail

# what the caller has open (255 is the script itself) is not for servers, which may live longer than it
for fd in /proc/self/fd/*; do
  fd=${fd##*/}
  [ "$fd" -le 9 ] || [ "$fd" -eq 255 ] || eval "exec $fd>&-"
done

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
SERVICES=${MYSYNC_SERVICES:-$(cd "$HERE/../.." && pwd)/.cache/servers}
mkdir -p "$SERVICES/locks"
SERVICES=$(cd "$SERVICES" && pwd)
INSTANCE=${INSTANCE:-default}
ROOT=$SERVICES/$NAME
RUN=$ROOT/instances/$INSTANCE
PROGRAMS=$NAME # the script whose programs are used: they are installed under its lock
SHARED=${TMPDIR:-/tmp}/mysync-servers-$(id -u) # what all checkouts of this user share: reserved ports, locks
MULTIARCH=$(uname -m)-linux-gnu # the folder of Debian's libraries
PORT_BLOCK=20 # the ports that an instance reserves, from PORT on
PARTS=(server)
STOP_SIGNAL=TERM
STOP_SECONDS=60
VERB=''
PORT=''
OPTIONS=()

log() { echo "$NAME: $*" >&2; }
die() { log "$*"; exit 1; }
settings() { :; }
ports_of() { echo "$PORT"; }

[[ $INSTANCE =~ ^[A-Za-z0-9_-]+$ ]] || die "INSTANCE='$INSTANCE': only letters, digits, - and _"
mkdir -p "$SHARED/ports"
[ -O "$SHARED" ] || die "$SHARED belongs to another user: set TMPDIR"

# --- processes -------------------------------------------------------------------------------------------------------

# stat_of PID: its state, the number of its threads, and its start time, which with the pid names it for good
stat_of() {
  local stat
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  read -r -a stat <<<"${stat##*) }"
  echo "${stat[0]} ${stat[17]} ${stat[19]}"
}

# started_at PID: the start time of a process.
# A zombie counts as gone, but not before its last thread, which may still hold the port.
started_at() {
  local state threads start
  read -r state threads start < <(stat_of "$1") || return 1
  [ "$state" = Z ] && [ "$threads" -le 1 ] && return 1
  echo "$start"
}

# pid_of PART: its pid, if it still is the process that this script started
pid_of() {
  local pid start
  read -r pid start 2>/dev/null <"$RUN/$1.pid" || return 1
  [ "$(started_at "$pid")" = "$start" ] && echo "$pid"
}

alive() { pid_of "$1" >/dev/null; }

paused() {
  local pid
  pid=$(pid_of "$1") && [[ $(stat_of "$pid") == T* ]]
}

# parts_that TEST...: the names of the parts for which TEST holds
parts_that() {
  local part
  for part in "${PARTS[@]}"; do ! "$@" "$part" || echo -n "$part "; done
}

dead() { ! alive "$1"; }

# spawn PART COMMAND...: starts a process in a session of its own; output goes to PART.log
spawn() {
  local part=$1
  shift
  echo "--- $(date '+%F %T') start ---" >>"$RUN/$part.log"
  setsid "$@" >>"$RUN/$part.log" 2>&1 </dev/null 7>&- 8>&- 9>&- &
  echo "$! $(started_at $!)" >"$RUN/$part.pid"
  disown
}

# wait_for PART SECONDS COMMAND...: waits until COMMAND succeeds and the ports are the part's own;
# shows the log when the part dies or the time is over
wait_for() {
  local part=$1 end=$((SECONDS + $2)) why
  shift 2
  until "$@" >/dev/null 2>&1 && owns_ports "$part"; do
    why=''
    alive "$part" || why='stopped while starting'
    [ $SECONDS -lt $end ] || why='did not answer in time'
    if [ -n "$why" ]; then
      PARTS=("$part")
      stop KILL
      log "$part $why (ports: $(ports_of "$part" | xargs)); the end of $RUN/$part.log:"
      tail -n 20 "$RUN/$part.log" >&2
      exit 1
    fi
    sleep 0.1
  done
}

# signal SIGNAL: to the process group of every part that lives
signal() {
  local part pid
  for part in "${PARTS[@]}"; do
    ! pid=$(pid_of "$part") || kill -s "$1" -- "-$pid" || true
  done
}

# stop SIGNAL: signals all parts at once and waits for them
stop() {
  local part pid end=$((SECONDS + STOP_SECONDS))
  for part in "${PARTS[@]}"; do
    pid=$(pid_of "$part") || continue
    if [ "$1" = KILL ]; then kill -KILL -- "-$pid" || true; else kill -s "$1" "$pid" || true; fi
  done
  signal CONT # a paused process does not see any other signal
  for part in "${PARTS[@]}"; do
    while pid=$(pid_of "$part"); do
      if [ $SECONDS -ge $end ]; then
        log "$part did not stop in ${STOP_SECONDS}s: killed"
        kill -KILL -- "-$pid" || true
      fi
      sleep 0.05
    done
    rm -f "$RUN/$part.pid"
  done
}

# --- the network -----------------------------------------------------------------------------------------------------

# sockets [STATE]: the local port (four hexadecimal digits) and the inode of TCP sockets, of this state or of
# all but TIME_WAIT
sockets() {
  cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
    awk -v state="${1:-}" '$4 == state || (state == "" && $4 != "06") {sub(/.*:/, "", $2); print $2, $10}'
}

listening() { [[ $'\n'"$(sockets 0A)" == *$'\n'"$(printf %04X "$1") "* ]]; }

# owns_ports PART: whether it is its process that listens on its ports, not somebody else's
owns_ports() {
  local pid port inode found
  pid=$(pid_of "$1") || return 1
  for port in $(ports_of "$1"); do
    found=''
    for inode in $(sockets 0A | awk -v port="$(printf %04X "$port")" '$1 == port {print $2}'); do
      [ -z "$(find "/proc/$pid/fd" -lname "socket:\[$inode\]" 2>/dev/null)" ] || found=yes
    done
    [ -n "$found" ] || return 1
  done
}

# free_port: a random port that begins a block in which nothing listens and which no instance of this user has.
# The range lies below the one from which the kernel takes the ports of outgoing connections.
# Runs under the lock $SHARED/lock; a link names the instance that has the block, for other checkouts to see.
free_port() {
  local port tries kept kept_ports used
  kept_ports=$(cat "$SERVICES"/*/instances/*/PORT 2>/dev/null || true)
  used=$'\n'$(sockets)
  for ((tries = 0; tries < 2000; tries++)); do
    port=$((20000 + RANDOM % 600 * PORT_BLOCK))
    [ ! -e "$SHARED/ports/$port" ] || continue
    for kept in $kept_ports; do
      [ "$kept" -ge $((port + PORT_BLOCK)) ] || [ $((kept + PORT_BLOCK)) -le "$port" ] || continue 2
    done
    for ((kept = port; kept < port + PORT_BLOCK; kept++)); do
      [[ $used != *$'\n'"$(printf %04X "$kept") "* ]] || continue 2
    done
    ln -sfn "$RUN" "$SHARED/ports/$port"
    echo "$port"
    return
  done
  die 'found no free port: stop some servers (all.sh wipe)'
}

# ask PORT BYTES: sends BYTES (a printf format) and succeeds when a reply comes
ask() {
  # shellcheck disable=SC2016 # the inner shell expands these
  timeout 5 bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$0" && printf "$1" >&3 && [ "$(head -c 8 <&3 | wc -c)" = 8 ]' "$1" "$2" 2>/dev/null
}

# http_ok PORT PATH: whether GET PATH is answered with 200
http_ok() {
  # shellcheck disable=SC2016 # the inner shell expands these
  timeout 5 bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$0" && printf "GET %s HTTP/1.0\r\n\r\n" "$1" >&3 &&
    read -r line <&3 && [[ $line == HTTP/*" 200 "* ]]' "$1" "$2" 2>/dev/null
}

# socket_path: where the Unix socket goes: into the instance's folder, or, because a socket's path has at most
# 107 bytes, into a short folder that is made for it and removed by `wipe`
socket_path() {
  local LC_ALL=C folder=$RUN
  if [ ${#RUN} -gt 90 ]; then
    folder=''
    [ ! -f "$RUN/SOCKETS" ] || folder=$(<"$RUN/SOCKETS")
    if [ "$VERB" = up ] && { [ -z "$folder" ] || [ ! -O "$folder" ]; }; then
      folder=${TMPDIR:-/tmp}
      [ ${#folder} -le 70 ] || folder=/tmp
      folder=$(mktemp -d "$folder/mysync-XXXXXX")
      echo "$folder" >"$RUN/SOCKETS"
    fi
  fi
  echo "$folder/sock"
}

# --- installation ----------------------------------------------------------------------------------------------------

# installed FOLDER WHAT: whether FOLDER holds WHAT; if not, FOLDER is emptied
installed() {
  [ "$(cat "$1/.done" 2>/dev/null)" = "$2" ] && return
  rm -rf "$1"
  mkdir -p "$1"
  return 1
}

# release: the code name of this machine's Debian release
release() { sed -n 's/^VERSION_CODENAME=//p' /etc/os-release; }

# apt SUITE COMMAND...: an apt command that sees nothing but this suite of the machine's own mirror, and no installed
# package, with a private state: it needs no rights and changes nothing on the machine
apt() {
  local folder=$SERVICES/apt/$1 suite=$1 program=$2 mirror
  shift 2
  if [ ! -f "$folder/sources.list" ]; then
    mkdir -p "$folder"/{empty,state/lists/partial,cache/archives/partial}
    : >"$folder/status"
    # shellcheck disable=SC2016 # apt expands these
    mirror=$(apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
      awk -v release="$(release)" '$1 == release && $2 == "main" && !uri {uri = $3} END {print uri}')
    [ -n "$mirror" ] || die "apt knows no mirror of Debian ($(release) main)"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$folder/sources.list"
  fi
  "$program" -qq -o Dir::State="$folder/state" -o Dir::State::status="$folder/status" -o Dir::Cache="$folder/cache" \
    -o Dir::Etc::sourcelist="$folder/sources.list" -o Dir::Etc::sourceparts="$folder/empty" \
    -o Dir::Etc::preferences="$folder/empty/none" -o Dir::Etc::preferencesparts="$folder/empty" \
    -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o Acquire::GzipIndexes=true \
    -o APT::Sandbox::User= -o Acquire::Languages=none -o Acquire::Retries=3 "$@"
}

# closure SUITE PACKAGE...: these packages and every library they need, down to libc if the suite is not the machine's own
closure() {
  local suite=$1 list
  shift
  list=$(apt "$suite" apt-get install -s --no-install-recommends "$@" | awk '/^Inst/ {print $2}') || return 1
  [ "$suite" != "$(release)" ] || list=$(grep -vxE 'libc6|libgcc-s1|libcrypt1' <<<"$list")
  { grep '^lib' <<<"$list" | grep -vE -- '-perl$|^libperl|^libpam-|^libc-|^libdebconf|^libgdbm|-common$|-data$'; printf '%s\n' "$@"; } | sort -u
}

# unpack_debs PREFIX SUITE PACKAGE...: unpacks packages, and the libraries they need, into PREFIX; installs nothing
unpack_debs() {
  local prefix=$1 suite=$2 deb link what="${*:2}"
  shift 2
  [ "$(cat "$prefix/.done" 2>/dev/null)" != "$what" ] || return 0
  command -v apt-get >/dev/null || die 'needs apt-get: these scripts run on Debian'
  (
    flock 7
    ! installed "$prefix" "$what" || exit 0
    mkdir "$prefix/debs"
    cd "$prefix/debs"
    # the lists of an earlier day name packages that the mirror may have dropped
    # shellcheck disable=SC2046 # a list
    { [ -n "$(find "$SERVICES/apt/$suite/updated" -mtime -1 2>/dev/null)" ] && apt "$suite" apt-get download $(closure "$suite" "$@"); } || {
      apt "$suite" apt-get update
      touch "$SERVICES/apt/$suite/updated"
      apt "$suite" apt-get download $(closure "$suite" "$@")
    }
    for deb in *.deb; do dpkg -x "$deb" "$prefix"; done
    rm -r "$prefix/debs"
    # one folder of libraries, as on an installed system, where /lib leads to /usr/lib
    if [ -d "$prefix/lib" ]; then cp -al "$prefix/lib/." "$prefix/usr/lib/"; rm -r "${prefix:?}/lib"; fi
    # links that lead from one folder at the top to another are absolute: they must lead into the prefix
    find "$prefix" -type l -lname '/*' | while read -r link; do
      [ ! -e "$prefix$(readlink "$link")" ] || ln -sfnr "$prefix$(readlink "$link")" "$link"
    done
    echo "$what" >"$prefix/.done"
  ) 7>"$SERVICES/locks/apt" || die "could not get the Debian packages $*"
}

# loader PREFIX: the loader of the libc unpacked there, with the library path that its programs need
loader() {
  local found=("$1"/usr/lib64/ld-linux*.so.* "$1/usr/lib/$MULTIARCH"/ld-linux*.so.*) each
  for each in "${found[@]}"; do
    [ -x "$each" ] && printf '%s\n' "$each" --library-path "$1/usr/lib/$MULTIARCH${2:+:$1/usr/lib/$MULTIARCH/$2}" && return
  done
  die "no loader in $1"
}

# need PROGRAM PACKAGE: installs a Debian package on this machine when a program is missing; only root can
need() {
  ! command -v "$1" >/dev/null || return 0
  [ "$(id -u)" = 0 ] || die "needs the program $1: install the Debian package '$2' as root (apt-get install $2)"
  log "installing the Debian package $2"
  (
    flock 7
    get=(env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0
      --no-install-recommends install "$2")
    "${get[@]}" >/dev/null 2>&1 || { apt-get -qq update && "${get[@]}" >/dev/null; }
  ) 7>"$SHARED/install.lock" || die "could not install the Debian package $2"
}

# maven_jars FOLDER GROUP:ARTIFACT:VERSION...: these jars and all that they need at run time
maven_jars() {
  local folder=$1 dep group artifact version
  shift
  ! installed "$folder" "$*" || return 0
  need mvn maven
  {
    echo '<project><modelVersion>4.0.0</modelVersion><groupId>mysync</groupId><artifactId>jars</artifactId><version>1</version><dependencies>'
    for dep; do
      IFS=: read -r group artifact version <<<"$dep"
      echo "<dependency><groupId>$group</groupId><artifactId>$artifact</artifactId><version>$version</version></dependency>"
    done
    echo '</dependencies></project>'
  } >"$folder/pom.xml"
  ( # Maven's local repository does not bear two Mavens at once
    flock 7
    nice mvn -B -q -f "$folder/pom.xml" dependency:copy-dependencies -DincludeScope=runtime \
      -DoutputDirectory="$folder" >"$folder/mvn.log" 2>&1
  ) 7>"$SHARED/maven.lock" || { tail -n 20 "$folder/mvn.log" >&2; die "Maven could not get $*"; }
  echo "$*" >"$folder/.done"
}

# java_version JAVA
java_version() { "$1" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p'; }

# find_java MINIMUM [javac]: a java of at least this version; with javac beside it. JAVA_SEARCH_PATH: the folders to look
# in, instead of JAVA_HOME, PATH and the usual places. If there is none, one that is unpacked for us alone.
find_java() {
  local folders=() folder java version
  if [ -n "${JAVA_SEARCH_PATH+set}" ]; then
    IFS=: read -r -a folders <<<"$JAVA_SEARCH_PATH"
  else
    folders=("${JAVA_HOME:-}/bin")
    ! java=$(command -v java) || folders+=("$(dirname "$java")")
    folders+=(/usr/lib/jvm/*/bin)
  fi
  for folder in "${folders[@]}"; do
    java=$folder/java
    [ -x "$java" ] || continue
    [ -z "${2:-}" ] || [ -x "$folder/$2" ] || continue
    version=$(java_version "$java")
    [ "${version:-0}" -ge "$1" ] || continue
    echo "$java"
    return
  done
  own_java
}

# own_java: a JDK 21, of the Debian release after bookworm and hence with its own libc
own_java() {
  local prefix=$SERVICES/java/prefix bin=$SERVICES/java/bin program
  [ -f "$prefix/.done" ] && [ -f "$bin/.done" ] && echo "$bin/java" && return
  log 'no suitable Java on this machine: unpacking one (125 MB to download)'
  unpack_debs "$prefix" trixie openjdk-21-jdk-headless openjdk-21-jre-headless >&2
  (
    flock 7
    mkdir -p "$bin"
    for program in java javac jar; do
      {
        echo '#!/bin/sh'
        # shellcheck disable=SC2016 # expanded when the program is called
        echo 'prefix=$(dirname "$0")/../prefix'
        mapfile -t words < <(loader "$prefix")
        echo "exec ${words[*]//$prefix/\"\$prefix\"} \"\$prefix\"/usr/lib/jvm/java-21-openjdk-*/bin/$program \"\$@\""
      } >"$bin/$program.new"
      chmod +x "$bin/$program.new"
      mv "$bin/$program.new" "$bin/$program"
    done
    rm -rf "$prefix"/usr/lib/jvm/*/jmods "$prefix/usr/share/doc"
    touch "$bin/.done"
  ) 7>"$SERVICES/locks/java"
  echo "$bin/java"
}

# --- settings and verbs ----------------------------------------------------------------------------------------------

# setting VAR DEFAULT: a variable of the environment that an instance keeps from its first start on
setting() {
  local var=$1 kept=''
  [ -f "$RUN/$var" ] && kept=$(<"$RUN/$var")
  if [ "$VERB" != up ]; then
    declare -g "$var=${kept:-${!var:-$2}}"
    return
  fi
  declare -g "$var=${!var:-${kept:-$2}}"
  if [ -n "$kept" ] && [ "$kept" != "${!var}" ]; then
    die "instance '$INSTANCE' was made with $var=$kept, not ${!var}: take another INSTANCE, or wipe this one"
  fi
  echo "${!var}" >"$RUN/$var"
}

load_settings() {
  local part
  if [ "$VERB" = up ] && [ -z "$PORT" ] && [ ! -f "$RUN/PORT" ]; then
    exec 9>"$SHARED/lock"
    flock 9
    PORT=$(free_port)
    setting PORT 0
    exec 9>&-
  else
    setting PORT 0
  fi
  settings
  # shellcheck disable=SC2034 # what `vars` prints does not depend on PART
  ALL_PARTS=("${PARTS[@]}")
  [ -n "${PART:-}" ] || return 0
  for part in $PART; do [[ " ${PARTS[*]} " == *" $part "* ]] || die "no part '$part': there are ${PARTS[*]}"; done
  read -r -a PARTS <<<"$PART"
}

locked_install() {
  local begin=$SECONDS
  exec 9>"$SERVICES/locks/$PROGRAMS"
  flock 9
  install >&2
  exec 9>&-
  [ $((SECONDS - begin)) -lt 2 ] || log "installed ($((SECONDS - begin))s)"
}

up() {
  local begin=$SECONDS part port
  signal CONT
  if [ -z "$(parts_that dead)" ] && ready; then
    [ ${#OPTIONS[@]} = 0 ] || log 'already up: the options were not used'
  else
    locked_install
    for part in $(parts_that dead); do
      for port in $(ports_of "$part"); do
        ! listening "$port" || die "port $port is taken by another process: wipe this instance, or give it another port"
      done
    done
    begin=$SECONDS
    start >&2
    log "up ($((SECONDS - begin))s)"
  fi
  vars
}

wipe() {
  local folder
  stop KILL
  if [ -f "$RUN/SOCKETS" ]; then
    folder=$(<"$RUN/SOCKETS")
    [ ! -O "$folder" ] || rm -rf "$folder"
  fi
  [ "$(readlink "$SHARED/ports/$PORT")" != "$RUN" ] || rm -f "$SHARED/ports/$PORT"
  rm -rf "$RUN"
}

usage() {
  echo "usage: [INSTANCE=name] [PART='part ...'] $NAME.sh VERB [PORT] [-- server options]" >&2
  echo "verbs: install up down restart kill pause resume status wipe" "$(declare -F | sed -n 's/.* verb_//p' | xargs)" >&2
  exit 2
}

lock_instance() {
  exec 8>"$SERVICES/locks/$NAME.$INSTANCE"
  flock 8
}

main() {
  VERB=${1:-}
  [ $# = 0 ] || shift
  if [[ ${1:-} =~ ^[0-9]+$ ]]; then
    PORT=$1
    shift
  fi
  if [ "${1:-}" = -- ]; then
    shift
    OPTIONS=("$@")
  elif [ $# -gt 0 ]; then
    usage
  fi
  case $VERB in
    install)
      RUN=$ROOT/instances/.none
      load_settings
      locked_install
      ;;
    up | restart)
      lock_instance
      if [ "$VERB" = restart ]; then
        [ -d "$RUN" ] || die "instance '$INSTANCE' was never started"
        (load_settings && stop "$STOP_SIGNAL")
      fi
      VERB=up
      mkdir -p "$RUN"
      load_settings
      up
      ;;
    down | wipe)
      [ -d "$RUN" ] || return 0
      load_settings
      [ "$VERB" != wipe ] || signal KILL # an `up` that is under way then fails and gives the lock back
      lock_instance
      if [ "$VERB" = wipe ]; then wipe; else stop "$STOP_SIGNAL"; fi
      ;;
    kill)
      [ -d "$RUN" ] || return 0
      load_settings
      stop KILL
      ;;
    pause | resume | status)
      [ -d "$RUN" ] || die "instance '$INSTANCE' was never started"
      load_settings
      [ -z "$(parts_that dead)" ] || die "down: $(parts_that dead)"
      case $VERB in
        pause) signal STOP ;;
        resume) signal CONT ;;
        status)
          [ -z "$(parts_that paused)" ] || die "paused: $(parts_that paused)"
          ready || die 'runs, but does not answer'
          vars
          ;;
      esac
      ;;
    *)
      [ "$(type -t "verb_$VERB")" = function ] || usage
      load_settings
      "verb_$VERB"
      ;;
  esac
}
