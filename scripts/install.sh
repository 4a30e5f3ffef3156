#!/bin/bash
# Installs what `make install` builds, or removes it again.
#
# usage: scripts/install.sh [--uninstall]
#
# PREFIX is /usr/local unless set; DESTDIR stands before every path, for packages. An existing
# configuration file stays. BINARY is target/release/simnel unless set; manual pages and completions
# are written by it, if it has the lab.
set -euo pipefail
cd "$(dirname "$0")/.."
prefix=${PREFIX:-/usr/local}
destdir=${DESTDIR:-}
binary=${BINARY:-target/release/simnel}
units="$destdir/etc/systemd/system"
[ "$prefix" = /usr ] && units="$destdir/usr/lib/systemd/system"
share="$destdir$prefix/share"
config="$destdir/etc/simnel/simnel.toml"

if [ "${1:-}" = --uninstall ]; then
    rm -fv "$destdir$prefix/bin/simnel" "$units/simnel.service" "$units/simnel@.service" \
        "$destdir/usr/lib/sysusers.d/simnel.conf" "$share"/man/man1/simnel{,-*}.1 \
        "$share/bash-completion/completions/simnel" "$share/zsh/site-functions/_simnel" \
        "$share/fish/vendor_completions.d/simnel.fish"
    [ ! -e "$config" ] || echo "kept: $config"
    exit
fi

[ -x "$binary" ] || { echo "install: $binary is missing: make build, or set BINARY" >&2; exit 1; }
install -D -m 755 "$binary" "$destdir$prefix/bin/simnel"
install -d "$units"
for unit in simnel.service simnel@.service; do
    sed "s|/usr/bin/simnel|$prefix/bin/simnel|" "dist/$unit" > "$units/$unit"
    chmod 644 "$units/$unit"
done
install -D -m 644 dist/simnel.sysusers "$destdir/usr/lib/sysusers.d/simnel.conf"
[ -e "$config" ] || install -D -m 644 dist/simnel.toml "$config"
if "$binary" man > /dev/null 2>&1; then
    install -d "$share/man/man1" "$share/bash-completion/completions" "$share/zsh/site-functions" \
        "$share/fish/vendor_completions.d"
    "$binary" man --output "$share/man/man1"
    "$binary" completions bash > "$share/bash-completion/completions/simnel"
    "$binary" completions zsh > "$share/zsh/site-functions/_simnel"
    "$binary" completions fish > "$share/fish/vendor_completions.d/simnel.fish"
fi
[ -n "$destdir" ] || cat <<END
Installed below $prefix. To begin:
  systemd-sysusers                      # makes the user simnel
  simnel check                          # looks at this machine
  edit /etc/simnel/simnel.toml
  systemctl daemon-reload && systemctl enable --now simnel
END
