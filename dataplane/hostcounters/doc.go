// Package hostcounters reads what the Linux kernel of a host counts: interfaces and their
// drivers (sysfs, ethtool), queueing disciplines (rtnetlink), softirqs and protocols
// (procfs), TCP connections (sock_diag), RDMA ports (sysfs) and queue pairs
// (netlink). It changes nothing.
// inhost/evidence says what the counters show.
package hostcounters
