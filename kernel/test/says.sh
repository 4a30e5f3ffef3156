# Expectations of commands, for tests in guests that are written for bash; sourced.

fail() { echo "$(basename "$0"): $*" >&2; exit 1; }
must() { "$@" || fail "\`$*\`"; }

# Output of a command, errors included; those of ours that are broken into lines are one again.
said() { # COMMAND...
    local text
    text=$("$@" 2>&1)
    echo "${text//$'\n  │ '/ }"
}
# Says that what the command prints has the text.
has() { # TEXT COMMAND...
    local text=$1 said
    shift
    said=$(said "$@")
    [[ $said == *"$text"* ]] || fail "\`$*\`: \`$text\` expected, but: $said"
}
lacks() { # TEXT COMMAND...
    local text=$1 said
    shift
    said=$(said "$@")
    [[ $said != *"$text"* ]] || fail "\`$*\`: \`$text\` not expected, but: $said"
}
# The same as `has`, within some ten seconds.
soon() { # TEXT COMMAND...
    local _
    for _ in {1..100}; do
        [[ $(said "${@:2}") == *"$1"* ]] && return
        sleep 0.1
    done
    has "$@"
}

# An interface v0 with the address 10.9.0.1, behind which 10.9.0.2 answers.
far() {
    mkdir -p /run/netns
    must ip netns add far
    must ip link add v0 type veth peer name v1 netns far
    must ip addr add 10.9.0.1/24 dev v0
    must ip link set v0 up
    must ip -n far addr add 10.9.0.2/24 dev v1
    must ip -n far link set v1 up
}
# Packets that the root discipline of a device has sent.
sent() { tc -s qdisc show dev "$1" root | sed -n 's/^ Sent [0-9]* bytes \([0-9]*\) pkt.*/\1/p;' | head -1; }
# Says that twenty packets went to 10.9.0.2 and back, through the root discipline of v0.
passes() {
    local before=$(sent v0) after
    has ' 0% packet loss' ping -c 20 -i 0.02 -q 10.9.0.2
    after=$(sent v0)
    [ $((after - before)) -ge 20 ] || fail "v0 sent $before and then $after packets"
}
