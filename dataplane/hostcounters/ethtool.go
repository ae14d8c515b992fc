package hostcounters

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/inhost/evidence"
)

// Commands of SIOCETHTOOL, of linux/ethtool.h.
const (
	ethtoolGetStrings  = 0x1b
	ethtoolGetStats    = 0x1d
	ethtoolStringSetSt = 1 // ETH_SS_STATS
	ethtoolGetSetInfo  = 0x37
	nameLength         = 32 // ETH_GSTRING_LEN
	maxCounters        = 1 << 16
)

// errNoDriverCounters is returned for an interface without a driver that counts.
var errNoDriverCounters = errors.New("no counters of a driver")

// ifreq is struct ifreq with a pointer.
type ifreq struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [16]byte
}

// readDriver reads the counters of ethtool -S that have a known meaning.
func readDriver(in *evidence.Interface) error {
	var names []string
	var values []uint64
	err := withSocket(func(fd int) (err error) {
		names, values, err = driverCounters(fd, in.Name)
		return err
	})
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENODEV) {
		return errNoDriverCounters
	}
	if err != nil {
		return err
	}
	in.Driver = byMeaning(names, values)
	return nil
}

// withSocket calls ask with a socket that requests are made on.
func withSocket(ask func(fd int) error) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written to it
	return ask(fd)
}

// byMeaning adds up counters with a known meaning: such as those of every priority.
func byMeaning(names []string, values []uint64) map[evidence.Meaning]uint64 {
	sums := map[evidence.Meaning]uint64{}
	for i, name := range names {
		if m, ok := evidence.NICMeaning(name); ok && i < len(values) {
			sums[m] += values[i]
		}
	}
	return sums
}

// driverCounters reads names and values.
func driverCounters(fd int, name string) ([]string, []uint64, error) {
	// struct ethtool_sset_info: cmd, reserved, mask, then one length.
	info := binary.NativeEndian.AppendUint32(nil, ethtoolGetSetInfo)
	info = binary.NativeEndian.AppendUint32(info, 0)
	info = binary.NativeEndian.AppendUint64(info, 1<<ethtoolStringSetSt)
	info = binary.NativeEndian.AppendUint32(info, 0)
	if err := ethtool(fd, name, info); err != nil {
		return nil, nil, err
	}
	n := binary.NativeEndian.Uint32(info[16:])
	if n == 0 || binary.NativeEndian.Uint64(info[8:]) == 0 {
		return nil, nil, errNoDriverCounters
	}
	if n > maxCounters {
		return nil, nil, fmt.Errorf("%d counters of its driver, want at most %d", n, maxCounters)
	}
	// struct ethtool_gstrings: cmd, set, length, then names.
	text := make([]byte, 12+nameLength*n)
	binary.NativeEndian.PutUint32(text, ethtoolGetStrings)
	binary.NativeEndian.PutUint32(text[4:], ethtoolStringSetSt)
	binary.NativeEndian.PutUint32(text[8:], n)
	if err := ethtool(fd, name, text); err != nil {
		return nil, nil, err
	}
	// struct ethtool_stats: cmd, length, then values.
	stats := make([]byte, 8+8*n)
	binary.NativeEndian.PutUint32(stats, ethtoolGetStats)
	binary.NativeEndian.PutUint32(stats[4:], n)
	if err := ethtool(fd, name, stats); err != nil {
		return nil, nil, err
	}
	names, values := make([]string, n), make([]uint64, n)
	for i := range n {
		names[i] = unix.ByteSliceToString(text[12+nameLength*i : 12+nameLength*(i+1)])
		values[i] = binary.NativeEndian.Uint64(stats[8+8*i:])
	}
	return names, values, nil
}

// ethtool executes one command on a buffer that begins with its number.
func ethtool(fd int, name string, buf []byte) error {
	var r ifreq
	copy(r.name[:unix.IFNAMSIZ-1], name)
	r.data = unsafe.Pointer(&buf[0])
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&r)))
	if errno != 0 {
		return fmt.Errorf("ethtool: %w", errno)
	}
	return nil
}
