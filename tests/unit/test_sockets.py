"""Lines as ss printed them in runs of the lab, read by hand."""

from __future__ import annotations

import pytest

from tunnel_lab.sockets import Socket, parse

HEADER = "Netid State     Recv-Q Send-Q Local Address:Port Peer Address:Port Process"
PLAIN = (
    'tcp ESTAB 44390 55104 10.99.0.1:1194 10.99.0.2:50780 users:(("openvpn",pid=2793,fd=6)) '
    "skmem:(r66880,rb131072,t0,tb131072,f384,w88384,o0,bl0,d0) cubic wscale:1,1 rto:284 rtt:80.424/0.044 "
    "ato:68 mss:1448 pmtu:1500 rcvmss:1448 advmss:1448 cwnd:79 bytes_sent:8161104 bytes_acked:8106004 "
    "bytes_received:333265 segs_out:5847 segs_in:3051 data_segs_out:5815 data_segs_in:365 send 11378892bps "
    "lastsnd:4 lastrcv:8 lastack:8 pacing_rate 22757744bps delivery_rate 5638104bps delivered:5777 "
    "app_limited busy:15872ms sndbuf_limited:924ms(5.8%) unacked:39 rcv_rtt:80 rcv_space:14480 "
    "rcv_ssthresh:86445 notsent:4 minrtt:80.099 snd_wnd:85596 rcv_wnd:42704"
)
SENT_AGAIN = (
    'tcp ESTAB 28 3220656 10.8.0.2:38740 10.8.0.1:5001 users:(("iperf",pid=2220,fd=3)) '
    "skmem:(r832,rb131072,t0,tb4194304,f2704,w3338800,o0,bl0,d0) cubic wscale:7,7 rto:396 rtt:195.149/4.056 "
    "ato:40 mss:1374 pmtu:1500 rcvmss:536 advmss:1448 cwnd:1268 ssthresh:1268 bytes_sent:52488238 "
    "bytes_retrans:129156 bytes_acked:49138427 bytes_received:28 segs_out:38205 segs_in:18565 "
    "data_segs_out:38202 data_segs_in:1 send 71421611bps lastsnd:12 lastrcv:10040 lastack:8 pacing_rate "
    "158433600bps delivery_rate 85540064bps delivered:37452 busy:10200ms unacked:2344 retrans:80/94 lost:80 "
    "sacked:1687 rcv_space:14480 rcv_ssthresh:64088 minrtt:81.314 snd_wnd:3628288 rcv_wnd:64256"
)
MAPPED = (
    'tcp ESTAB 0 31856 [::ffff:10.99.0.1]:5201 [::ffff:10.99.0.2]:51184 users:(("iperf3",pid=2258,fd=5)) '
    "skmem:(r0,rb131072,t0,tb46080,f4048,w41008,o0,bl0,d0) cubic wscale:7,7 rto:284 rtt:80.998/2.82 ato:40 "
    "mss:1448 pmtu:1500 rcvmss:536 advmss:1448 cwnd:20 bytes_sent:43440 bytes_acked:14480 bytes_received:37 "
    "segs_out:31 segs_in:13 data_segs_out:30 data_segs_in:1 send 2860318bps lastsnd:16 lastrcv:96 lastack:16 "
    "pacing_rate 5720616bps delivery_rate 1420752bps delivered:11 app_limited busy:96ms unacked:20 "
    "rcv_space:14480 rcv_ssthresh:64088 notsent:2896 minrtt:80.397 snd_wnd:83072 rcv_wnd:65152"
)
SEVERAL = (
    "tcp   ESTAB     0      0              10.99.0.1:2022         10.99.0.2:58312 "
    'users:(("sshd-session",pid=2490,fd=7),("sshd-session",pid=2488,fd=7)) timer:(keepalive,119min,0) '
    "ino:1094115 sk:555 cgroup:/libpod_parent/libpod-2eb5/tunnellab.slice/tunnellab-sshd@modern.service <-> "
    "skmem:(r0,rb6291456,t0,tb3442176,f0,w0,o0,bl0,d0) ts sack cubic wscale:7,7 rto:296 rtt:95.617/1.257 "
    "ato:40 mss:1448 pmtu:1500 rcvmss:1448 advmss:1448 cwnd:107 ssthresh:686 bytes_sent:153575949 "
    "bytes_retrans:282308 bytes_acked:153293641 bytes_received:105313701 segs_out:136842 segs_in:116769 "
    "data_segs_out:106870 data_segs_in:73908 send 12963051bps lastsnd:248 lastrcv:168 lastack:168 pacing_rate "
    "25926064bps delivery_rate 94546952bps delivered:106675 busy:26800ms rwnd_limited:148ms(0.6%) "
    "retrans:0/196 rcv_rtt:99 rcv_space:2076332 rcv_ssthresh:4176475 minrtt:80 rcv_ooopack:2187 "
    "snd_wnd:4176896 rcv_wnd:4176512"
)
LISTEN = (
    'tcp LISTEN 0 4096 *:5201 *:* users:(("iperf3",pid=2629,fd=3)) '
    "skmem:(r0,rb131072,t0,tb16384,f0,w0,o0,bl0,d0) cubic cwnd:10"
)
UDP = (
    "udp   UNCONN    0      0          10.99.0.1:1194       0.0.0.0:*    "
    'users:(("openvpn",pid=2051,fd=4))      ino:1079750 sk:531 '
    "cgroup:/libpod_parent/libpod-2eb5/tunnellab.slice/tunnellab-openvpn@modern_udp.service <-> "
    "skmem:(r0,rb212992,t0,tb212992,f4096,w0,o0,bl0,d0)"
)
TIME_WAIT = (
    "tcp   TIME-WAIT 0      0          127.0.0.1:55524    127.0.0.1:6379        timer:(timewait,9.516sec,0) "
    "ino:0 sk:524"
)
ORPHAN = "tcp FIN-WAIT-2 0 0 [::ffff:127.0.0.1]:5201 [::ffff:127.0.0.1]:59734"
KERNEL = "udp UNCONN 0 0 0.0.0.0:51820 0.0.0.0:* skmem:(r0,rb212992,t0,tb212992,f0,w0,o0,bl0,d0)"


def one(line: str) -> Socket:
    (found,) = parse(line)
    return found


def test_every_field_of_a_tcp_line() -> None:
    found = one(PLAIN)
    assert (found.netid, found.state, found.recv_q, found.send_q) == ("tcp", "ESTAB", 44390, 55104)
    assert found.key == ("tcp", "10.99.0.1:1194", "10.99.0.2:50780")
    assert found.holders == (("openvpn", 2793),)
    assert found.process == "openvpn"
    assert found.memory == {
        **{"r": 66880, "rb": 131072, "t": 0, "tb": 131072, "f": 384, "w": 88384, "o": 0},
        **{"bl": 0, "d": 0},
    }
    numbers = ("rtt", "minrtt", "mss", "cwnd", "snd_wnd", "bytes_sent", "unacked", "busy", "sndbuf_limited", "wscale")
    assert [found.number(name) for name in numbers] == [
        *(80.424, 80.099, 1448, 79, 85596, 8161104, 39, 15872, 924, 1),
    ]


def test_rates_are_in_bits_per_second() -> None:
    found = one(PLAIN)
    assert found.info["send"] == "11378892"
    assert (found.number("pacing_rate"), found.number("delivery_rate")) == (22757744, 5638104)


def test_what_ss_does_not_print_is_zero() -> None:
    found = one(PLAIN)
    assert [found.number(name) for name in ("rwnd_limited", "bytes_retrans", "ssthresh", "lost", "nonsense")] == [0] * 5
    assert found.retransmitted == 0


def test_bytes_in_flight_are_those_not_acknowledged_without_those_not_sent() -> None:
    assert one(PLAIN).in_flight == 55104 - 4  # its 39 segments are not all full
    assert one(MAPPED).in_flight == 31856 - 2896 == 20 * 1448
    assert one(SENT_AGAIN).in_flight == 3220656


@pytest.mark.parametrize(
    ("shown", "number"), [("1.", 1), ("..", 0), ("-", 0), ("", 0), (".5", 0), ("7ms", 7), ("a7", 0)]
)
def test_numbers_that_are_none(shown: str, number: float) -> None:
    assert one(f"tcp ESTAB 0 0 10.0.0.1:1 10.0.0.2:2 cwnd:{shown} mss:1448").number("cwnd") == number


def test_retransmissions() -> None:
    found = one(SENT_AGAIN)
    assert found.retransmitted == 129156
    assert found.number("retrans") == 80, "now; the number after the slash is since the beginning"
    assert (found.number("lost"), found.number("sacked"), found.number("ssthresh")) == (80, 1687, 1268)


def test_mapped_addresses_are_shown_as_ipv4() -> None:
    found = one(MAPPED)
    assert (found.local, found.peer) == ("10.99.0.1:5201", "10.99.0.2:51184")
    assert found.crosses


def test_several_holders_and_the_extended_output() -> None:
    found = one(SEVERAL)
    assert found.holders == (("sshd-session", 2490), ("sshd-session", 2488))
    assert found.info["cgroup"].endswith("/tunnellab.slice/tunnellab-sshd@modern.service")
    assert (found.info["ino"], found.info["sk"]) == ("1094115", "555")
    assert "timer" not in found.info
    assert (found.memory["tb"], found.number("rwnd_limited"), found.number("minrtt")) == (3442176, 148, 80)


def test_listeners() -> None:
    found = one(LISTEN)
    assert (found.state, found.send_q, found.local, found.peer) == ("LISTEN", 4096, "*:5201", "*:*")
    assert not found.crosses


def test_udp() -> None:
    found = one(UDP)
    assert (found.netid, found.state, found.process) == ("udp", "UNCONN", "openvpn")
    assert (found.memory["rb"], found.memory["f"], found.number("mss")) == (212992, 4096, 0)
    assert not found.crosses


@pytest.mark.parametrize("line", [TIME_WAIT, ORPHAN, KERNEL])
def test_sockets_that_no_process_holds(line: str) -> None:
    found = one(line)
    assert (found.holders, found.process, found.crosses) == ((), "", False)


def test_only_socket_lines_are_read_in_their_order() -> None:
    other = 'u_str ESTAB 0 0 * 12345 * 12346 users:(("redis-server",pid=7,fd=1))'
    text = "\n".join([HEADER, UDP, "", other, LISTEN, "Cannot open netlink socket: Permission denied", PLAIN])
    assert [socket.process for socket in parse(text)] == ["openvpn", "iperf3", "openvpn"]
    assert parse("") == parse(HEADER) == []


@pytest.mark.parametrize(
    ("state", "peer", "crosses"),
    [
        ("ESTAB", "10.99.0.2:50780", True),
        ("ESTAB", "[2001:db8::2]:50780", True),
        ("ESTAB", "127.0.0.1:6379", False),
        ("ESTAB", "127.1.2.3:6379", False),
        ("ESTAB", "[::1]:6379", False),
        ("ESTAB", "[::ffff:127.0.0.1]:6379", False),
        ("TIME-WAIT", "10.99.0.2:50780", False),
        ("SYN-SENT", "10.99.0.2:50780", False),
    ],
)
def test_what_crosses_to_the_other_host(state: str, peer: str, crosses: bool) -> None:
    assert one(f"tcp {state} 0 0 10.99.0.1:1194 {peer}").crosses is crosses


def test_names_with_spaces_and_parentheses() -> None:
    found = one('tcp ESTAB 0 0 10.0.0.1:1 10.0.0.2:2 users:(("a (b) c",pid=12,fd=3),("d",pid=13,fd=4)) cwnd:10')
    assert found.holders == (("a (b) c", 12), ("d", 13))
    assert found.number("cwnd") == 10
