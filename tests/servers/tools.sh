#!/usr/bin/env bash
# Programs that tests call, unpacked on demand: `tools.sh promtool kcat` prints where each one is.
NAME=tools
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ $# -gt 0 ] || { echo 'usage: tools.sh promtool | kcat | faketime ...' >&2; exit 2; }
mkdir -p "$ROOT"
exec 9>"$SERVICES/locks/$NAME"
flock 9
line=()
for tool; do
  case $tool in
    promtool)
      unpack_debs "$ROOT/promtool" "$(release)" prometheus >&2
      line+=("PROMTOOL=$ROOT/promtool/usr/bin/promtool")
      ;;
    kcat)
      unpack_debs "$ROOT/kcat" "$(release)" kcat >&2
      # a script that finds the libraries unpacked beside the program
      cat >"$ROOT/kcat/kcat" <<-END
	#!/bin/sh
	here=\$(dirname "\$0")
	LD_LIBRARY_PATH=\$here/usr/lib/$MULTIARCH exec "\$here/usr/bin/kcat" "\$@"
	END
      chmod +x "$ROOT/kcat/kcat"
      line+=("KCAT=$ROOT/kcat/kcat")
      ;;
    faketime)
      unpack_debs "$ROOT/faketime" "$(release)" libfaketime >&2
      line+=("FAKETIME=$ROOT/faketime/usr/lib/$MULTIARCH/faketime/libfaketime.so.1")
      ;;
    *) die "unknown tool $tool" ;;
  esac
done
echo "${line[*]}"
