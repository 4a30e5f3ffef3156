# The real-time response under load test in ns-2.35: what `simnel bench sim --only rrul` simulates.
#
# Four CUBIC transfers up and four down (ns's port of Linux's TCP: CUBIC, SACK; sinks with SACK and
# delayed ACKs of 40 ms), three probes both ways, 10/10 Mbit/s, 50 ms of base RTT, 60 seconds. ns-2.35
# has no fq_codel; its queue is the first argument: DropTail (the cheapest), SFQ or DRR.
# All choices are in ns's favour: two nodes and no access links, only the packet headers that are
# needed, nothing traced, no Tcl while it runs.
#
# usage: ns ns2-rrul.tcl QUEUE SECONDS [count]
# With `count` it prints the packets that left the two bottlenecks, without it nothing.

lassign $argv queue seconds count

remove-all-packet-headers
add-packet-header Flags IP TCP

# A full frame is 1514 bytes with the 40 of headers and the 10 of timestamps.
Agent/TCP set packetSize_ 1464
Agent/TCP set timestamps_ true
Agent/TCP set window_ 10000
Agent/TCP set windowInit_ 10
Agent/TCP set windowInitOption_ 1
Agent/TCPSink set ts_echo_rfc1323_ true
Agent/TCPSink/DelAck set interval_ 40ms
Queue set limit_ 100
Queue/SFQ set maxqueue_ 100
Queue/SFQ set buckets_ 128
Queue/DRR set buckets_ 128
Queue/DRR set blimit_ 150000
Queue/DRR set quantum_ 1514
Queue/DRR set mask_ 0

set ns [new Simulator]
set home [$ns node]
set server [$ns node]
$ns duplex-link $home $server 10Mb 25ms $queue

set random [new RNG]
$random seed 1

proc transfer {from to} {
    global ns random
    set tcp [new Agent/TCP/Linux]
    set sink [new Agent/TCPSink/Sack1/DelAck]
    $ns attach-agent $from $tcp
    $ns attach-agent $to $sink
    $ns connect $tcp $sink
    $tcp set fid_ [incr ::flow]
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    # As Linux's, the congestion control must be chosen once the connection exists.
    $ns at 0 "$tcp select_ca cubic"
    $ns at [$random uniform 0.0 0.1] "$ftp start"
}

proc probe {from to} {
    global ns
    set udp [new Agent/UDP]
    $ns attach-agent $from $udp
    set null [new Agent/Null]
    $ns attach-agent $to $null
    $ns connect $udp $null
    $udp set fid_ [incr ::flow]
    set cbr [new Application/Traffic/CBR]
    $cbr attach-agent $udp
    $cbr set packetSize_ 106
    $cbr set interval_ 0.1
    $ns at 0 "$cbr start"
}

set flow 0
for {set n 0} {$n < 4} {incr n} {
    transfer $home $server
    transfer $server $home
}
for {set n 0} {$n < 3} {incr n} {
    probe $home $server
    probe $server $home
}

if {$count ne ""} {
    set monitors [list [$ns monitor-queue $home $server ""] [$ns monitor-queue $server $home ""]]
}
$ns at $seconds {
    if {$count ne ""} {
        set packets 0
        foreach monitor $monitors { incr packets [expr {int([$monitor set pdepartures_])}] }
        puts $packets
    }
    exit 0
}
$ns run
