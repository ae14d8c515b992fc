package hostcounters

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/inhost/settings"
)

// ReadSettings reads how the interfaces of this host are set up. What does not answer is named.
func ReadSettings() (*settings.Host, error) {
	name, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("hostname: %w", err)
	}
	h := &settings.Host{Hostname: name, Time: time.Now()}
	if err := readSettingFiles(os.DirFS("/"), h); err != nil {
		return nil, err
	}
	if err := readAddresses(h); err != nil {
		return nil, err
	}
	for i := range h.Interfaces {
		in := &h.Interfaces[i]
		if err := readEthtool(in); err != nil {
			in.NotAnswered(settings.QuestionPause, refusalOf(err, in.Driver))
		}
		readDCB(in)
	}
	return h, nil
}

// readAddresses reads the addresses of all interfaces, at once: a host may have thousands.
func readAddresses(h *settings.Host) error {
	links, err := net.Interfaces()
	if err != nil {
		return fmt.Errorf("interfaces: %w", err)
	}
	all, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("addresses: %w", err)
	}
	byIndex := map[int][]netip.Addr{}
	for _, a := range all {
		if addr, ok := netip.AddrFromSlice(a.IP); ok {
			byIndex[a.LinkIndex] = append(byIndex[a.LinkIndex], addr.Unmap())
		}
	}
	byName := map[string][]netip.Addr{}
	for _, l := range links {
		byName[l.Name] = byIndex[l.Index]
	}
	for i := range h.Interfaces {
		h.Interfaces[i].Addresses = byName[h.Interfaces[i].Name]
	}
	return nil
}

// Commands of SIOCETHTOOL, of linux/ethtool.h.
const (
	ethtoolGetDriver = 0x03 // ETHTOOL_GDRVINFO
	ethtoolGetPause  = 0x12 // ETHTOOL_GPAUSEPARAM
)

// readEthtool reads the name of the driver, and pause parameters.
func readEthtool(in *settings.Interface) error {
	return withSocket(func(fd int) error {
		// struct ethtool_drvinfo: the command, then the name.
		const name, nameEnd, driverSize = 4, 36, 196
		driver := make([]byte, driverSize)
		binary.NativeEndian.PutUint32(driver, ethtoolGetDriver)
		if err := ethtool(fd, in.Name, driver); err == nil {
			in.Driver = unix.ByteSliceToString(driver[name:nameEnd])
		}
		// struct ethtool_pauseparam: command, autoneg, rx_pause, tx_pause.
		pause := make([]byte, 16)
		binary.NativeEndian.PutUint32(pause, ethtoolGetPause)
		if err := ethtool(fd, in.Name, pause); err != nil {
			return err
		}
		flag := func(i int) bool { return binary.NativeEndian.Uint32(pause[4*i:]) != 0 }
		in.Pause = &settings.Pause{Negotiated: flag(1), Obey: flag(2), Send: flag(3)}
		return nil
	})
}

// readSettingFiles reads what is in sysfs, procfs and configfs.
func readSettingFiles(root fs.FS, h *settings.Host) error {
	if n, err := strconv.Atoi(text(root, "proc/sys/net/ipv4/tcp_ecn")); err == nil {
		h.TCPECN = &n
	}
	list, err := fs.ReadDir(root, netFolder)
	if err != nil {
		return fmt.Errorf("interfaces: %w", err)
	}
	for _, e := range list {
		dir := path.Join(netFolder, e.Name())
		if e.Name() == "lo" || text(root, dir+"/operstate") == "" { // bonding_masters is a file
			continue
		}
		in := settings.Interface{Name: e.Name(), MTU: int(number(root, dir+"/mtu"))}
		h.Interfaces = append(h.Interfaces, in)
	}
	slices.SortFunc(h.Interfaces, func(a, b settings.Interface) int { return compareNames(a.Name, b.Name) })
	return readRDMASettings(root, h)
}

// readRDMASettings reads those of RDMA ports: upstream's configfs, and files of NVIDIA's drivers.
func readRDMASettings(root fs.FS, h *settings.Host) error {
	ports, err := fs.Glob(root, rdmaFolder+"/*/ports/*")
	if err != nil {
		return fmt.Errorf("RDMA ports: %w", err)
	}
	for _, dir := range ports {
		number, err := strconv.Atoi(path.Base(dir))
		if err != nil {
			continue
		}
		device := path.Base(path.Dir(path.Dir(dir)))
		names := interfacesOf(root, dir)
		for i := range h.Interfaces {
			in := &h.Interfaces[i]
			if !slices.Contains(names, in.Name) {
				continue
			}
			ecn := path.Join(netFolder, in.Name, "ecn")
			in.RDMA = append(in.RDMA, settings.RDMA{
				Device: device, Port: number, NotifyECN: enabledPriorities(root, ecn+"/roce_np/enable"), ReactECN: enabledPriorities(root, ecn+"/roce_rp/enable"),
				TrafficClass:   byteOf(text(root, path.Join(rdmaFolder, device, "tc", path.Base(dir), "traffic_class"))),
				CMTrafficClass: byteOf(text(root, path.Join("sys/kernel/config/rdma_cm", device, "ports", path.Base(dir), "default_roce_tos"))),
			})
		}
	}
	return nil
}

// interfacesOf returns the names of the interfaces that a port of an RDMA device uses.
func interfacesOf(root fs.FS, port string) (names []string) {
	files, _ := fs.ReadDir(root, port+"/gid_attrs/ndevs") // InfiniBand has none
	for _, f := range files {
		if name := text(root, path.Join(port, "gid_attrs/ndevs", f.Name())); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// enabledPriorities reads a folder with a file for each priority; nil if there is none.
func enabledPriorities(root fs.FS, dir string) *settings.Priorities {
	var set settings.Priorities
	known := false
	for i := range 8 {
		value := text(root, path.Join(dir, strconv.Itoa(i)))
		known = known || value != ""
		if value == "1" {
			set |= 1 << i
		}
	}
	if !known {
		return nil
	}
	return &set
}

// byteOf reads a number such as 106, or "Global tclass=106"; nil if there is none.
func byteOf(text string) *uint8 {
	n, err := strconv.ParseUint(text[strings.LastIndex(text, "=")+1:], 0, 8)
	if err != nil {
		return nil
	}
	b := uint8(n)
	return &b
}
