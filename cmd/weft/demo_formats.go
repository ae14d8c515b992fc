package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"

	"github.com/weft-telemetry/weft/dataplane/convert"
	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/ingest/erspan"
	"github.com/weft-telemetry/weft/ingest/intreport"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
)

// reportFormats are the values of --formats, beside DTA.
var reportFormats = []string{"int", "erspan"}

// readFormats reads --formats.
func (f *reportFlags) readFormats() error {
	for _, name := range f.formats {
		if !slices.Contains(reportFormats, name) {
			return usagef("--formats %q, want int for labels, erspan for mirrors, or int,erspan", name)
		}
	}
	f.labelsAsINT, f.mirrorsAsERSPAN = slices.Contains(f.formats, "int"), slices.Contains(f.formats, "erspan")
	switch {
	case f.convertsReports() && f.speak != "":
		return usagef("--formats: switches that speak %s send no reports of Weft", f.speak)
	case f.sendINT != "" && (!f.labelsAsINT || f.send == ""):
		return usagef("--send-int: needs --send and --formats int")
	}
	return nil
}

func (f *reportFlags) convertsReports() bool { return f.labelsAsINT || f.mirrorsAsERSPAN }

// rawIP is the protocol of sockets that are given whole IPv4 packets.
const rawIP = "ip4:255"

// dialConverted opens the sockets of converted reports. Call the result to close them.
func (o *reportOutput) dialConverted(f *reportFlags) (func(), error) {
	o.conns = map[convert.Format]net.Conn{}
	closeAll := func() {
		for _, c := range o.conns {
			c.Close()
		}
	}
	if f.labelsAsINT {
		to, err := parseTarget("send-int", f.sendINT)
		if err != nil {
			return closeAll, err
		}
		if !to.IsValid() {
			to = netip.AddrPortFrom(o.to.Addr(), intreport.Port)
		}
		c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
		if err != nil {
			return closeAll, err
		}
		o.conns[convert.INT] = c
	}
	if f.mirrorsAsERSPAN {
		to := o.to.Addr().Unmap()
		if !to.Is4() {
			return closeAll, usagef("--formats erspan: mirrors to %v, want an IPv4 address", to)
		}
		c, err := net.DialIP(rawIP, nil, &net.IPAddr{IP: to.AsSlice()})
		if err != nil {
			if errors.Is(err, os.ErrPermission) {
				err = fmt.Errorf("%w; ERSPAN packets of many switches need CAP_NET_RAW, --record writes them without it", err)
			}
			return closeAll, fmt.Errorf("--formats erspan: %w", err)
		}
		o.conns[convert.ERSPAN] = c
	}
	return closeAll, nil
}

// sendConverted takes an INT report or an ERSPAN packet of a switch. A service knows the
// switch of a mirror by its address, so the packet has the switch's, not this machine's.
func (o *reportOutput) sendConverted(f convert.Format, at model.Time, from model.NodeID, payload []byte) error {
	kind, port := intreport.Source.Kind, uint16(intreport.Port)
	if f == convert.ERSPAN {
		kind, port = erspan.Source.Kind, 0
	}
	to := netip.AddrPortFrom(collectorAddress, port)
	if o.to.IsValid() {
		to = netip.AddrPortFrom(o.to.Addr(), port)
	}
	if err := o.recordPacket(kind, at, from, port, to, payload); err != nil {
		return err
	}
	c := o.conns[f]
	if c == nil {
		return nil
	}
	if f == convert.ERSPAN {
		payload = capture.AppendPacket(nil, kind, netip.AddrPortFrom(o.fabric.Node(from).IPv4.Netip(), 0), to, payload)
	}
	if _, err := c.Write(payload); errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("INT reports to %v: %w; is weft serve running there? int.listen is its address", c.RemoteAddr(), err)
	} else if err != nil {
		return fmt.Errorf("%s to %v: %w", titleOf(kind), to, err)
	}
	return nil
}

func titleOf(k source.Kind) string {
	if k == erspan.Source.Kind {
		return erspan.Source.Title
	}
	return intreport.Source.Title
}
