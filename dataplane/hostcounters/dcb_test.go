package hostcounters

import (
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/inhost/settings"
)

// answer is the payload of the kernel's answer that testdata/dcb.c puts together.
func answer(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/dcb.hex")
	if err != nil {
		t.Fatal(err)
	}
	b, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDCB(t *testing.T) {
	in := settings.Interface{Name: "eth0"}
	if err := parseDCB(answer(t), &in); err != nil {
		t.Fatal(err)
	}
	want := settings.Interface{
		Name: "eth0",
		PFC:  &settings.PFC{Enabled: 1<<3 | 1<<4, Classes: 8, MACsecSkip: true, Delay: 0x1234},
		ETS: &settings.ETS{
			Willing: true, Classes: 8, Algorithm: [8]string{"ets", "strict", "cbs", "ets", "vendor", "strict", "strict", "strict"},
			Bandwidth: [8]uint8{40, 0, 0, 60}, ClassOf: [8]uint8{0, 0, 1, 3, 4, 5, 6, 7},
		},
		Apps: &[]settings.App{
			{Selector: settings.DSCP, Protocol: 26, Priority: 3},
			{Selector: settings.DSCP, Protocol: 48, Priority: 6},
			{Selector: settings.EtherType, Protocol: 0x8915, Priority: 4},
			{Selector: settings.Datagram, Protocol: 4791, Priority: 3},
		},
		Trust:   []settings.Selector{settings.DSCP},
		DCBX:    &settings.DCBX{Host: true, IEEE: true},
		Buffers: &settings.Buffers{ByPriority: [8]uint8{0, 0, 0, 1, 1}, Bytes: [8]uint32{20016, 116368}, Total: 156096},
	}
	if !reflect.DeepEqual(in, want) {
		t.Errorf("settings %+v; want %+v", in, want)
	}
}

// TestDCBIsOfTheKernelsHeaders compiles testdata/dcb.c with the headers of this machine.
func TestDCBIsOfTheKernelsHeaders(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc: testdata/dcb.hex is not compared with linux/dcbnl.h")
	}
	program := filepath.Join(t.TempDir(), "dcb")
	if out, err := exec.Command(gcc, "-o", program, "testdata/dcb.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got, err := exec.Command(program).Output()
	if err != nil {
		t.Fatal(err)
	}
	if want, err := os.ReadFile("testdata/dcb.hex"); err != nil || string(got) != string(want) {
		t.Errorf("the kernel's headers give\n%s; want testdata/dcb.hex, %v", got, err)
	}
}

// message is an answer with other attributes in DCB_ATTR_IEEE.
func message(attributes ...[]byte) []byte {
	return slices.Concat([]byte{0, dcbIEEEGet, 0, 0}, attribute(dcbIEEE, attributes...))
}

// TestPartialAnswer: a driver that answers some questions only is not taken to have the others off.
func TestPartialAnswer(t *testing.T) {
	in := settings.Interface{Name: "eth0", Driver: "igc"}
	if err := parseDCB(message(attribute(ieeeAppTable)), &in); err != nil {
		t.Fatal(err)
	}
	if in.PFC != nil || in.ETS != nil || in.Buffers != nil || in.DCBX != nil || in.Apps == nil || len(*in.Apps) != 0 {
		t.Errorf("settings %+v; want an empty table of apps alone", in)
	}
	why := "not supported by the driver igc"
	if want := map[string]string{"pfc": why, "ets": why, "buffers": why}; !reflect.DeepEqual(in.Unanswered, want) {
		t.Errorf("unanswered %v; want %v", in.Unanswered, want)
	}
}

func TestDamagedDCB(t *testing.T) {
	app := func(selector, priority, protocol byte) []byte {
		return attribute(ieeeAppTable, attribute(appIEEE, []byte{selector, priority, protocol, 0}))
	}
	many := make([][]byte, maxDCBApps+1)
	for i := range many {
		many[i] = attribute(appDCB, []byte{1, 0, 0, 0})
	}
	for name, tc := range map[string]struct {
		in   []byte
		want string
	}{
		"empty":            {nil, "want an answer to DCB_CMD_IEEE_GET"},
		"another command":  {[]byte{0, 20, 0, 0}, "begin with 00140000"},
		"no settings":      {[]byte{0, dcbIEEEGet, 0, 0}, "without DCB_ATTR_IEEE"},
		"another's":        {slices.Concat([]byte{0, dcbIEEEGet, 0, 0}, attribute(dcbInterface, []byte("eth1\x00"))), `settings of "eth1", want those of "eth0"`},
		"short ETS":        {message(attribute(ieeeETS, make([]byte, 58))), "ieee_ets of 58 bytes, want 59"},
		"class of ETS":     {message(attribute(ieeeETS, append(make([]byte, 27), 8), make([]byte, 31))), "priority 0 has traffic class 8"},
		"short PFC":        {message(attribute(ieeePFC, make([]byte, 7))), "ieee_pfc of 7 bytes, want 8"},
		"short buffers":    {message(attribute(ieeeBuffer, make([]byte, 43))), "dcbnl_buffer of 43 bytes, want 44"},
		"short app":        {message(attribute(ieeeAppTable, attribute(appIEEE, []byte{5, 3, 26}))), "dcb_app of 3 bytes, want 4"},
		"priority of app":  {message(app(5, 8, 26)), "app dscp 26 has priority 8"},
		"DSCP of app":      {message(app(5, 3, 64)), "app of DSCP 64"},
		"many apps":        {message(attribute(ieeeAppTable, many...)), "more than 4096 apps"},
		"trust":            {message(attribute(ieeeTrust, attribute(1, []byte{5, 5}))), "attribute 1 has 2 bytes, want 1"},
		"cut in attribute": {answer(t)[:50], "has a length of"},
	} {
		t.Run(name, func(t *testing.T) {
			in := settings.Interface{Name: "eth0"}
			err := parseDCB(tc.in, &in)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("parseDCB = %v; want %q", err, tc.want)
			}
			if !reflect.DeepEqual(in, settings.Interface{Name: "eth0"}) {
				t.Errorf("settings %+v; want none of a wrong answer", in)
			}
		})
	}
}

// FuzzDCB: any answer is refused, or gives settings that a file may have.
func FuzzDCB(f *testing.F) {
	f.Add(answer(f))
	f.Add(message(attribute(ieeeAppTable)))
	f.Fuzz(func(t *testing.T, b []byte) {
		in := settings.Interface{Name: "eth0"}
		if err := parseDCB(b, &in); err != nil {
			return
		}
		if in.Apps != nil && len(*in.Apps) > len(b) {
			t.Fatalf("%d apps of %d bytes", len(*in.Apps), len(b))
		}
		checkFile(t, &settings.Host{Hostname: "h", Interfaces: []settings.Interface{in}})
	})
}
