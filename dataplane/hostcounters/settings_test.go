package hostcounters

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/inhost/settings"
)

// checkFile checks that settings are read back as they were written.
func checkFile(t testing.TB, h *settings.Host) {
	t.Helper()
	text, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := settings.Parse("host.json", text); err != nil || len(again) != 1 {
		t.Fatalf("%s is not read back: %v", text, err)
	}
}

// TestSettingFiles reads files as upstream's kernel and NVIDIA's drivers have them.
func TestSettingFiles(t *testing.T) {
	root := fstest.MapFS{}
	for name, text := range map[string]string{
		"proc/sys/net/ipv4/tcp_ecn":                                 "2\n",
		"sys/class/net/bonding_masters":                             "bond0\n",
		"sys/class/net/lo/operstate":                                "unknown\n",
		"sys/class/net/eth1/operstate":                              "down\n",
		"sys/class/net/eth1/mtu":                                    "1500\n",
		"sys/class/net/eth0/operstate":                              "up\n",
		"sys/class/net/eth0/mtu":                                    "9000\n",
		"sys/class/net/eth0/ecn/roce_np/enable/0":                   "0\n",
		"sys/class/net/eth0/ecn/roce_np/enable/3":                   "1\n",
		"sys/class/net/eth0/ecn/roce_rp/enable/3":                   "0\n",
		"sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0":     "eth0\n",
		"sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/1":     "eth0\n",
		"sys/class/infiniband/mlx5_0/tc/1/traffic_class":            "Global tclass=106\n",
		"sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos": "104\n",
		"sys/class/infiniband/rxe0/ports/1/gid_attrs/ndevs/0":       "eth1\n",
		"sys/class/infiniband/ib0/ports/1/state":                    "4: ACTIVE\n",
	} {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	var h settings.Host
	if err := readSettingFiles(root, &h); err != nil {
		t.Fatal(err)
	}
	accept, class, cm, notify, react := 2, uint8(106), uint8(104), settings.Priorities(1<<3), settings.Priorities(0)
	want := settings.Host{TCPECN: &accept, Interfaces: []settings.Interface{
		{Name: "eth0", MTU: 9000, RDMA: []settings.RDMA{{Device: "mlx5_0", Port: 1, NotifyECN: &notify, ReactECN: &react, TrafficClass: &class, CMTrafficClass: &cm}}},
		{Name: "eth1", MTU: 1500, RDMA: []settings.RDMA{{Device: "rxe0", Port: 1}}},
	}}
	if !reflect.DeepEqual(h, want) {
		t.Errorf("settings %+v; want %+v", h, want)
	}
}

// TestKernelRefuses asks this machine's kernel. Loopback has neither DCB nor pause frames, and
// that is said, and not that they are off.
func TestKernelRefuses(t *testing.T) {
	in := settings.Interface{Name: "lo"}
	err := readEthtool(&in)
	readDCB(&in)
	if err == nil || refusalOf(err, in.Driver) != "not supported by the driver" || in.Pause != nil {
		t.Errorf("pause frames %+v, %v; want none, not supported", in.Pause, err)
	}
	if why := in.Unanswered[settings.QuestionDCB]; why != "not supported by the driver" || in.PFC != nil || in.ETS != nil || in.Apps != nil {
		t.Errorf("DCB %q, settings %+v; want none, not supported", why, in)
	}
	gone := settings.Interface{Name: "weft-none"}
	readDCB(&gone)
	if why := gone.Unanswered[settings.QuestionDCB]; why != unix.ENODEV.Error() {
		t.Errorf("an interface that is not there: %q; want %q", why, unix.ENODEV.Error())
	}
}

// TestThisHost reads this machine, whatever it has.
func TestThisHost(t *testing.T) {
	h, err := ReadSettings()
	if err != nil {
		t.Fatal(err)
	}
	for i := range h.Interfaces {
		in := &h.Interfaces[i]
		answered := map[string]bool{
			settings.QuestionPFC: in.PFC != nil, settings.QuestionETS: in.ETS != nil,
			settings.QuestionBuffers: in.Buffers != nil, settings.QuestionPause: in.Pause != nil,
		}
		for question, ok := range answered {
			why := in.Unanswered[question]
			if question != settings.QuestionPause && why == "" {
				why = in.Unanswered[settings.QuestionDCB]
			}
			if ok != (why == "") {
				t.Errorf("%s of %s: answered %v, and %q; want an answer or a reason", question, in.Name, ok, why)
			}
		}
		if in.MTU == 0 || strings.ContainsRune(in.Name, '/') {
			t.Errorf("interface %+v; want one with an MTU", in)
		}
	}
	if len(h.Interfaces) > 0 {
		checkFile(t, h)
	}
}
