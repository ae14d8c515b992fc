package hostcounters

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/inhost/settings"
)

// Commands, attributes and selectors of linux/dcbnl.h.
const (
	dcbIEEEGet = 21 // DCB_CMD_IEEE_GET

	dcbInterface = 1  // DCB_ATTR_IFNAME
	dcbIEEE      = 13 // DCB_ATTR_IEEE
	dcbDCBX      = 14 // DCB_ATTR_DCBX

	ieeeETS      = 1  // DCB_ATTR_IEEE_ETS
	ieeePFC      = 2  // DCB_ATTR_IEEE_PFC
	ieeeAppTable = 3  // DCB_ATTR_IEEE_APP_TABLE
	ieeeBuffer   = 10 // DCB_ATTR_DCB_BUFFER
	ieeeTrust    = 11 // DCB_ATTR_DCB_APP_TRUST_TABLE, of Linux 6.3

	appIEEE = 1 // DCB_ATTR_IEEE_APP
	appDCB  = 2 // DCB_ATTR_DCB_APP: selectors that are not IEEE's
)

// maxDCBApps bounds the apps of an interface: DSCPs, ports and EtherTypes have fewer in use.
const maxDCBApps = 1 << 12

// dcbRequest is struct dcbmsg and the name of an interface.
type dcbRequest []byte

func (r dcbRequest) Len() int          { return len(r) }
func (r dcbRequest) Serialize() []byte { return r }

func newDCBRequest(name string) dcbRequest {
	r := dcbRequest{unix.AF_UNSPEC, dcbIEEEGet, 0, 0}
	return append(r, nl.NewRtAttr(dcbInterface, nl.ZeroTerminated(name)).Serialize()...)
}

// readDCB asks the driver of an interface. Without one that answers, the kernel refuses.
func readDCB(in *settings.Interface) {
	request := nl.NewNetlinkRequest(unix.RTM_GETDCB, 0)
	request.AddData(newDCBRequest(in.Name))
	messages, err := request.Execute(unix.NETLINK_ROUTE, 0)
	if err == nil && len(messages) != 1 {
		err = fmt.Errorf("%d answers, want 1", len(messages))
	}
	if err == nil {
		err = parseDCB(messages[0], in)
	}
	if err != nil {
		in.NotAnswered(settings.QuestionDCB, refusalOf(err, in.Driver))
	}
}

// refusalOf says why a driver or the kernel did not answer.
func refusalOf(err error, driver string) string {
	if !errors.Is(err, unix.EOPNOTSUPP) {
		return err.Error()
	}
	if driver == "" {
		return "not supported by the driver"
	}
	return "not supported by the driver " + driver
}

// parseDCB reads the answer to DCB_CMD_IEEE_GET: struct dcbmsg, then attributes. It changes
// nothing in in if it is wrong.
func parseDCB(message []byte, in *settings.Interface) error {
	const header = 4 // struct dcbmsg: family, command, padding
	if len(message) < header || message[1] != dcbIEEEGet {
		return fmt.Errorf("%d bytes that begin with %x, want an answer to DCB_CMD_IEEE_GET", len(message), message[:min(len(message), header)])
	}
	out, found := ieee{*in}, false
	err := eachAttribute(message[header:], func(kind uint16, value []byte) error {
		switch kind {
		case dcbInterface:
			if name := attributeText(value); name != in.Name {
				return fmt.Errorf("settings of %.32q, want those of %q", name, in.Name)
			}
		case dcbDCBX:
			mode, err := attributeU8(kind, value)
			out.DCBX = &settings.DCBX{Host: mode&1 != 0, Managed: mode&2 != 0, CEE: mode&4 != 0, IEEE: mode&8 != 0, Static: mode&16 != 0}
			return err
		case dcbIEEE:
			found = true
			return eachAttribute(value, out.addIEEE)
		}
		return nil
	})
	if err == nil && !found {
		err = errors.New("an answer without DCB_ATTR_IEEE")
	}
	if err != nil {
		return err
	}
	for question, answered := range map[string]bool{
		settings.QuestionPFC: out.PFC != nil, settings.QuestionETS: out.ETS != nil, settings.QuestionBuffers: out.Buffers != nil,
	} {
		if !answered {
			out.NotAnswered(question, refusalOf(unix.EOPNOTSUPP, in.Driver))
		}
	}
	*in = out.Interface
	return nil
}

// ieee adds the attributes of DCB_ATTR_IEEE to an interface.
type ieee struct{ settings.Interface }

func (in *ieee) addIEEE(kind uint16, value []byte) (err error) {
	switch kind {
	case ieeeETS:
		in.ETS, err = parseETS(value)
	case ieeePFC:
		in.PFC, err = parsePFC(value)
	case ieeeBuffer:
		in.Buffers, err = parseBuffers(value)
	case ieeeAppTable:
		in.Apps, err = parseApps(value)
	case ieeeTrust:
		in.Trust, err = parseTrust(value)
	}
	return err
}

// wantBytes returns an error for an attribute that is shorter than its structure. It may be longer
// in kernels to come.
func wantBytes(name string, value []byte, n int) error {
	if len(value) < n {
		return fmt.Errorf("%s of %d bytes, want %d", name, len(value), n)
	}
	return nil
}

// parseETS reads struct ieee_ets.
func parseETS(b []byte) (*settings.ETS, error) {
	const bandwidth, algorithms, classes, end = 3, 19, 27, 59 // tc_tx_bw, tc_tsa, prio_tc
	if err := wantBytes("ieee_ets", b, end); err != nil {
		return nil, err
	}
	e := &settings.ETS{Willing: b[0] != 0, Classes: b[1]}
	copy(e.Bandwidth[:], b[bandwidth:])
	copy(e.ClassOf[:], b[classes:])
	for class := range 8 {
		if e.ClassOf[class] > 7 {
			return nil, fmt.Errorf("priority %d has traffic class %d, want 0 to 7", class, e.ClassOf[class])
		}
		e.Algorithm[class] = algorithmName(b[algorithms+class])
	}
	return e, nil
}

// algorithmName names a transmission selection algorithm as dcb-ets(8) does.
func algorithmName(n uint8) string {
	switch n {
	case 0:
		return "strict"
	case 1:
		return "cbs"
	case 2:
		return "ets"
	case 255:
		return "vendor"
	}
	return strconv.Itoa(int(n))
}

// parsePFC reads the start of struct ieee_pfc. Its counters are those of the driver, too.
func parsePFC(b []byte) (*settings.PFC, error) {
	const delay, end = 4, 8 // delay is aligned to 2, the counters to 8
	if err := wantBytes("ieee_pfc", b, end); err != nil {
		return nil, err
	}
	return &settings.PFC{
		Classes: b[0], Enabled: settings.Priorities(b[1]), MACsecSkip: b[2] != 0, Delay: binary.NativeEndian.Uint16(b[delay:]),
	}, nil
}

// parseBuffers reads struct dcbnl_buffer.
func parseBuffers(b []byte) (*settings.Buffers, error) {
	const sizes, total, end = 8, 40, 44
	if err := wantBytes("dcbnl_buffer", b, end); err != nil {
		return nil, err
	}
	out := &settings.Buffers{Total: binary.NativeEndian.Uint32(b[total:])}
	copy(out.ByPriority[:], b)
	for i := range out.Bytes {
		out.Bytes[i] = binary.NativeEndian.Uint32(b[sizes+4*i:])
	}
	return out, nil
}

// parseApps reads attributes that are struct dcb_app each.
func parseApps(b []byte) (*[]settings.App, error) {
	list := []settings.App{}
	err := eachAttribute(b, func(kind uint16, value []byte) error {
		if kind != appIEEE && kind != appDCB {
			return nil
		}
		if err := wantBytes("dcb_app", value, 4); err != nil {
			return err
		}
		a := settings.App{Selector: selectorName(value[0]), Priority: value[1], Protocol: binary.NativeEndian.Uint16(value[2:])}
		switch {
		case a.Priority > 7:
			return fmt.Errorf("app %s %d has priority %d, want 0 to 7", a.Selector, a.Protocol, a.Priority)
		case a.Selector == settings.DSCP && a.Protocol > 63:
			return fmt.Errorf("app of DSCP %d, want 0 to 63", a.Protocol)
		case len(list) == maxDCBApps:
			return fmt.Errorf("more than %d apps", maxDCBApps)
		}
		list = append(list, a)
		return nil
	})
	return &list, err
}

// parseTrust reads selectors, the one that is asked first first.
func parseTrust(b []byte) (list []settings.Selector, err error) {
	err = eachAttribute(b, func(kind uint16, value []byte) error {
		n, err := attributeU8(kind, value)
		if name := selectorName(n); err == nil && !slices.Contains(list, name) {
			list = append(list, name)
		}
		return err
	})
	return list, err
}

// selectorName names a selector of IEEE 802.1Q, or PCP of Linux.
func selectorName(n uint8) settings.Selector {
	switch n {
	case 1:
		return settings.EtherType
	case 2:
		return settings.Stream
	case 3:
		return settings.Datagram
	case 4:
		return settings.Port
	case 5:
		return settings.DSCP
	case 255:
		return settings.PCP
	}
	return settings.Selector(strconv.Itoa(int(n)))
}
