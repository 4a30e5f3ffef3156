#!/bin/sh
# Records what the real `tc` and Linux's own disciplines say to each other over netlink: the witness
# of crates/core/tests/tc_recorded/netlink.rs.
#
# As scripts/record-tc.sh, this boots Debian's user-mode-linux with this very script as its init. A
# monitor of netlink (nlmon) there sees what `tc` sends and what the kernel dumps.
#
#   apt-get install user-mode-linux iproute2 perl
#   scripts/record-netlink.sh   # rewrites crates/core/tests/data/tc/netlink.txt
#
# A block is `$ WORDS`, and behind a sign the bytes of an attribute in hexadecimal: `>` TCA_OPTIONS
# that tc sent (`>` alone if it sent none), `<` TCA_OPTIONS that Linux dumped, `=` TCA_STATS_APP
# after some packets and `{` the JSON that tc printed for it. `!` stands for words that the kernel
# refused. Zeros at the end of an attribute are cut off.
set -eu

if [ "$$" != 1 ]; then
    here=$(cd "$(dirname "$0")/.." && pwd)
    exec linux quiet mem=256M rootfstype=hostfs rootflags=/ rw init="$here/scripts/record-netlink.sh" \
        OUT="$here/crates/core/tests/data/tc" con0=fd:0,fd:1 con=null
fi

# --- From here on we are the init of the guest. -------------------------------------------------
set +eu
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
mount -t sysfs sysfs /sys
exec 2>/run/errors

modules=/usr/lib/uml/modules/$(uname -r)
load() { # A module and whatever modules.dep lists before it; finit_module(2) is call 313 on amd64.
    line=$(grep "/$1.ko:" "$modules/modules.dep")
    for file in $(printf '%s\n' ${line#*:} | tac) ${line%%:*}; do
        perl -e 'open(F,"<",$ARGV[0])||die; syscall(313,fileno(F),my $none="",0)' "$modules/$file"
    done
}
for module in dummy nlmon af_packet sch_cake sch_codel sch_fq_codel sch_pie sch_fq_pie sch_red sch_sfq \
    sch_sfb; do load $module; done
ip link set lo up
ip link add dummy0 type dummy
ip link set dummy0 up
ip address add 10.9.9.1/24 dev dummy0
ip link add nlmon0 type nlmon
ip link set nlmon0 up

cat >/run/record.pl <<'PERL'
use strict;
use Socket;
my ($NEWQDISC, $KIND, $OPTIONS, $STATS2, $APP) = (36, 1, 2, 7, 4);

# All netlink messages from here on.
socket(my $monitor, 17, SOCK_RAW, 0x0300) or die "no monitor: $!";
open(my $index, "<", "/sys/class/net/nlmon0/ifindex") or die;
chomp(my $nlmon = <$index>);
bind($monitor, pack("S n l x12", 17, 3, $nlmon)) or die "bind: $!";
setsockopt($monitor, SOL_SOCKET, 33, 4000000);
$monitor->blocking(0);

sub attributes { # number => payload; the last counts
    my ($bytes, %found) = @_;
    while (length $bytes >= 4) {
        my ($len, $number) = unpack("S S", $bytes);
        last if $len < 4 || $len > length $bytes;
        $found{$number & 0x3fff} = substr($bytes, 4, $len - 4);
        $bytes = substr($bytes, ($len + 3) & ~3);
    }
    return %found;
}

sub messages { # of what the monitor has seen: [flags, attributes] of each that is about a qdisc
    my @found;
    while (defined(my $got = sysread($monitor, my $bytes, 65536))) {
        while (length $bytes >= 16) {
            my ($len, $type, $flags) = unpack("L S S", $bytes);
            last if $len < 16 || $len > length $bytes;
            push @found, [$flags, { attributes(substr($bytes, 36, $len - 36)) }] if $type == $NEWQDISC;
            $bytes = substr($bytes, ($len + 3) & ~3);
        }
    }
    return @found;
}

sub hex_of {
    my $hex = unpack("H*", $_[0]);
    $hex =~ s/(00){4,}$//;
    return sprintf("%d %s", length $_[0], $hex);
}

my $socket;
sub udp { # bytes, packets, TOS, first port, ports
    my ($bytes, $n, $tos, $port, $ports) = @_;
    socket(my $s, PF_INET, SOCK_DGRAM, 0);
    setsockopt($s, 0, 1, $tos);
    setsockopt($s, SOL_SOCKET, 32, 4000000);
    send($s, "x" x $bytes, 0, sockaddr_in($port + $_ % $ports, inet_aton("10.9.9.2"))) for 1 .. $n;
}

while (my $words = <STDIN>) {
    chomp $words;
    next if $words eq "";
    my $loaded = $words =~ s/^\* //;
    system("tc qdisc del dev dummy0 root >/dev/null 2>&1");
    messages();
    my $failed = system("tc qdisc add dev dummy0 root $words >/dev/null 2>/run/said");
    my ($sent) = grep { $_->[0] & 1 } messages();
    next unless $sent;
    print "\$ $words\n";
    my $options = $sent->[1]{$OPTIONS};
    print defined $options ? "> " . hex_of($options) . "\n" : ">\n";
    if ($failed) { print "!\n"; next }
    if ($loaded) {
        udp(1400, 60, 2, 5000, 3); udp(200, 40, 184, 6000, 2); udp(900, 20, 32, 7000, 1);
        select(undef, undef, undef, 0.3);
    }
    my ($json, @dumps);
    for (1 .. 20) {
        messages();
        $json = `tc -s -j qdisc show dev dummy0`;
        # Not those of other devices.
        @dumps = grep { !($_->[0] & 1) && $_->[1]{$KIND} ne "noqueue\0" } messages();
        last if $json eq `tc -s -j qdisc show dev dummy0`;
    }
    my $dump = $dumps[0][1];
    print "< " . hex_of($dump->{$OPTIONS}) . "\n" if defined $dump->{$OPTIONS};
    next unless $loaded;
    my %stats = attributes($dump->{$STATS2});
    print "= " . hex_of($stats{$APP}) . "\n" if defined $stats{$APP};
    $json =~ s/^\[|\]\s*$//g;
    print "$json\n";
}
PERL

{
    echo "# Recorded by scripts/record-netlink.sh from $(tc -V | sed 's/^tc utility, //;s/,.*//')" \
        "on Linux 6.1's own disciplines."
    perl /run/record.pl <<'WORDS'
* cake
cake bandwidth 20mbit
cake bandwidth 12345678 diffserv4 nat docsis ack-filter
cake bandwidth 16mbit besteffort dual-dsthost nat wash ingress pppoe-vcmux
cake bandwidth 1500kbit diffserv8 dual-srchost nowash egress ack-filter-aggressive no-split-gso rtt 50ms ptm overhead 34 mpu 68 memlimit 32mb fwmark 0x0f
cake autorate-ingress flows precedence overhead -4 atm
cake bandwidth 10mbit autorate-ingress
cake unlimited hosts split-gso noatm
cake srchost datacentre
cake dsthost interplanetary
cake flowblind rtt 1
cake triple-isolate nonat no-ack-filter memlimit 0 fwmark 0
cake raw overhead 18
cake raw
cake overhead 0
cake conservative
cake bandwidth 100gbit ethernet ether-vlan
cake bandwidth 1tbit
* cake bandwidth 2mbit diffserv4 overhead 18
* cake bandwidth 64kbit diffserv8 memlimit 100kb pppoe-vcmux ingress
* cake bandwidth 1mbit besteffort
* codel
codel limit 500
codel target 20ms interval 200ms
codel target 333us
codel target 1.5ms ecn
codel ce_threshold 1ms
codel ce_threshold 0
codel noecn
codel interval 4294s limit 4294967295
codel limit 37 target 7ms interval 70ms ce_threshold 3ms ecn
* fq_codel
fq_codel limit 1000
fq_codel flows 64
fq_codel flows 65536
fq_codel flows 65537
fq_codel quantum 300
fq_codel quantum 255
fq_codel quantum 1048577
fq_codel target 4ms interval 80ms
fq_codel noecn
fq_codel ce_threshold 1ms ce_threshold_selector 0x1/0x3
fq_codel ce_threshold_selector 0x4/0xfc
fq_codel ce_threshold 0 noecn
fq_codel memory_limit 200k drop_batch 16
fq_codel memory_limit 0
fq_codel limit 10240 flows 512 quantum 1000 target 6ms interval 60ms memory_limit 4mb ecn drop_batch 32 ce_threshold 10ms
* pie
pie limit 1
pie target 20ms
pie target 100us
pie target 15ms tupdate 20ms
pie tupdate 30ms alpha 4 beta 30
pie alpha 32 beta 32
pie ecn
pie noecn
pie bytemode
pie dq_rate_estimator
pie limit 500 target 10ms tupdate 20ms alpha 1 beta 10 ecn bytemode dq_rate_estimator
* fq_pie
fq_pie limit 1000
fq_pie flows 64
fq_pie flows 65534
fq_pie quantum 300
fq_pie quantum 1mb
fq_pie target 20ms tupdate 30ms
fq_pie alpha 4 beta 30
fq_pie memory_limit 200k
fq_pie ecn ecn_prob 25
fq_pie ecn_prob 100
fq_pie bytemode dq_rate_estimator
fq_pie limit 500 flows 512 target 10ms tupdate 20ms alpha 1 beta 10 quantum 1000 memory_limit 4mb ecn_prob 5 ecn bytemode dq_rate_estimator
* red limit 400000 avpkt 1000
red limit 400kb avpkt 1000 bandwidth 10mbit
red limit 400000 min 30000 max 90000 avpkt 1000
red limit 400000 min 30000 max 90000 avpkt 1000 burst 55
red limit 400000 min 30000 max 90000 avpkt 1000 probability 0.1
red limit 400000 min 10000 max 30000 avpkt 500 ecn
red limit 400000 min 10000 max 30000 avpkt 500 ecn harddrop
red limit 400000 min 10000 max 30000 avpkt 500 ecn nodrop
red limit 400000 min 10000 max 30000 avpkt 500 adaptive
red limit 400000 min 10000 max 30000 avpkt 500 ecn adaptive bandwidth 100mbit
red limit 1mb min 100kb max 300kb avpkt 1500 burst 200 bandwidth 1gbit
* sfq
sfq limit 100
sfq limit 2
sfq limit 10000
sfq limit 10000 depth 10
sfq perturb 10
sfq quantum 300
sfq divisor 64
sfq divisor 1
sfq divisor 65536
sfq flows 16
sfq flows 70000
sfq depth 10
sfq depth 1
sfq flows 1 depth 2
sfq headdrop limit 50
sfq limit 40 depth 10 flows 16
sfq limit 3000 flows 512 divisor 16 depth 30 headdrop quantum 1000 perturb 3
sfq redflowlimit 30000 min 8000 max 20000 avpkt 1000 probability 0.1
* sfq redflowlimit 30000 ecn
sfq redflowlimit 30000 max 9000 avpkt 500 ecn harddrop
sfq redflowlimit 100000 min 8000 max 60000 burst 30 avpkt 1000 probability 0.02 ecn headdrop limit 500
* sfb
sfb limit 60
sfb rehash 2000 db 1000
sfb rehash 2000 db 1000 target 8 max 12 increment 0.00458 decrement 0.00046
sfb target 10
sfb max 30
sfb increment 0.01
sfb increment 1 decrement 0
sfb penalty_rate 20 penalty_burst 40
sfb penalty_rate 0 penalty_burst 0
sfb rehash 0 db 0
sfb limit 100 target 9 max 13 rehash 60000 db 3000 increment 0.002 decrement 0.0003 penalty_rate 7 penalty_burst 9
WORDS
} >"$OUT/netlink.txt"
sort /run/errors | uniq -c | sort -rn | head -40
echo o >/proc/sysrq-trigger
sleep 5
