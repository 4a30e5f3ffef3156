# What programs that manage networks find on a system, for tests in guests; sourced, behind says.sh.

# Users, directories and the bus that systemd would have made as the first process; $bus is the bus's process. Where /sys
# is read-only, as in a container, none of them waits for udev.
prepare() {
    printf '%s:x:%d:%d::/:\n' root 0 0 systemd-network 101 101 messagebus 102 102 > /etc/passwd
    cut -d: -f1-3 /etc/passwd | sed 's/$/:/' > /etc/group
    must mount -o remount,ro /sys
    mkdir -p /var && must ln -s /run /var/run
    mkdir -p /run/dbus /run/systemd/{network,netif/{links,leases}} /var/lib/NetworkManager /etc/NetworkManager/system-connections
    chown -R systemd-network:systemd-network /run/systemd/netif
    dbus-daemon --system --nofork --nopidfile --nosyslog 2>/run/bus.log & bus=$!
    soon system_bus_socket ls /run/dbus
}

# Disciplines of ours that the kernel has.
ours() { cat /sys/module/simnel/refcnt; }
counts() { [ "$(ours)" = "$1" ] || fail "$(ours) disciplines of ours, where $1 are wanted"; }

# Says that `tc` shows the same of our disciplines as of Linux's. Linux's tupdate is a number of ticks, of 4 ms; ours is exact.
same() { # WHAT OURS LINUX
    [ "$2" = "${3//tupdate 16ms/tupdate 15ms}" ] || fail "$1: $2"$'\n'"Linux's own: $3"
}

# Linux's disciplines go, and ours get their names.
take_names() { # KIND...
    local kind
    counts 0
    must rmmod simnel
    for kind in "$@"; do must rmmod sch_$kind; done
    must insmod simnel.ko aliases=$(IFS=,; echo "$*")
}

# The module goes, and the kernel's log has nothing of it.
leave() {
    local sign
    kill $bus
    counts 0
    must rmmod simnel
    log() { dmesg | grep -v -e taint -e aliases:; }
    for sign in simnel: BUG: WARNING:; do lacks $sign log; done
}
