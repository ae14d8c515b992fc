package gnmi

import (
	"context"
	"encoding/json"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	gnmipb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo/discover"
)

// getter answers a Get with what a function has for a database and a path.
type getter struct {
	gnmipb.UnimplementedGNMIServer
	answer func(target, path string) (any, bool)
}

func (g *getter) Get(_ context.Context, req *gnmipb.GetRequest) (*gnmipb.GetResponse, error) {
	path := req.GetPath()[0]
	v, ok := g.answer(req.GetPrefix().GetTarget(), pathText(path))
	if !ok {
		return nil, status.Errorf(codes.NotFound, "no %s", pathText(path))
	}
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	update := &gnmipb.Update{Path: path, Val: &gnmipb.TypedValue{Value: &gnmipb.TypedValue_JsonIetfVal{JsonIetfVal: body}}}
	return &gnmipb.GetResponse{Notification: []*gnmipb.Notification{{Update: []*gnmipb.Update{update}}}}, nil
}

// startGetter serves a target without TLS, and returns its address.
func startGetter(t *testing.T, answer func(target, path string) (any, bool)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(grpc.WaitForHandlers(true))
	gnmipb.RegisterGNMIServer(s, &getter{answer: answer})
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Serve(l)
	}()
	t.Cleanup(func() {
		s.Stop()
		<-done
	})
	return l.Addr().String()
}

// config asks targets without TLS.
func discoverConfig(model string, targets ...string) *Config {
	c := Source.NewConfig().(*Config)
	c.Targets, c.Model, c.TLS = targets, model, TLSOff
	return c
}

// TestDiscoverSONiC: two switches whose tables are in a real Redis, with SONiC's keys, describe
// their link by alias and description, and a host that is no target.
func TestDiscoverSONiC(t *testing.T) {
	db := startRedis(t)
	// One Redis has the databases of both switches, with the switch before SONiC's key.
	db.set("tor0/PORT|Ethernet0", "alias", "etp1", "speed", "100000")
	db.set("tor0/PORT|Ethernet4", "alias", "etp2", "speed", "25000")
	db.set("tor0/PORT|Ethernet8", "alias", "etp3", "speed", "25000")
	db.set("tor0/LLDP_ENTRY_TABLE:Ethernet0", "lldp_rem_sys_name", "spine0", "lldp_rem_port_id", "etp9", "lldp_rem_port_id_subtype", "7",
		"lldp_rem_port_desc", "Ethernet32", "lldp_rem_sys_cap_enabled", "28 00", "lldp_rem_man_addr", "10.0.0.2,fe80::1")
	db.set("tor0/LLDP_ENTRY_TABLE:Ethernet4", "lldp_rem_sys_name", "h0", "lldp_rem_port_id", "02:00:00:00:00:01", "lldp_rem_port_id_subtype", "3",
		"lldp_rem_port_desc", "ens1", "lldp_rem_sys_cap_enabled", "01 00")
	db.set("spine0/PORT|Ethernet32", "alias", "etp9", "speed", "100000")
	db.set("spine0/LLDP_ENTRY_TABLE:Ethernet32", "lldp_rem_sys_name", "tor0", "lldp_rem_port_id", "etp1", "lldp_rem_port_id_subtype", "7",
		"lldp_rem_port_desc", "Ethernet0", "lldp_rem_sys_cap_enabled", "28 00")
	var targets []string
	for _, name := range []string{"tor0", "spine0"} {
		targets = append(targets, name+"="+startGetter(t, func(target, path string) (any, bool) {
			prefix, known := map[string]string{"CONFIG_DB/PORT": "PORT|", "APPL_DB/LLDP_ENTRY_TABLE": "LLDP_ENTRY_TABLE:"}[target+path]
			table := map[string]map[string]string{}
			for _, key := range db.do("KEYS", name+"/"+prefix+"*") {
				table[strings.TrimPrefix(key, name+"/"+prefix)] = db.hash(key)
			}
			return table, known
		}))
	}
	nodes, err := discoverConfig("sonic", targets...).Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f, findings, err := discover.Build(discover.Config{Name: "found"}, nodes)
	if err != nil || len(findings) > 0 {
		t.Fatalf("%v, findings %v; want none", err, findings)
	}
	var got []string
	for _, l := range f.Links() {
		name := func(p model.Port) string { return f.Node(p.Node).Name + " " + f.Port(p).Name }
		got = append(got, name(l.A)+" - "+name(l.B)+" "+model.FormatRate(l.Rate))
	}
	if d := cmp.Diff([]string{"h0 ens1 - tor0 Ethernet4 25 Gb/s", "spine0 Ethernet32 - tor0 Ethernet0 100 Gb/s"}, got); d != "" {
		t.Errorf("links (- want, + got):\n%s", d)
	}
}

// TestDiscoverOpenConfig: names with and without the module.
func TestDiscoverOpenConfig(t *testing.T) {
	text := map[string]string{
		"/interfaces": `{"openconfig-interfaces:interface":[{"name":"Ethernet1","openconfig-if-ethernet:ethernet":{"state":{"port-speed":"openconfig-if-ethernet:SPEED_400GB"}}},
			{"name":"Ethernet2"}]}`,
		"/lldp/interfaces": `{"interface":[{"name":"Ethernet1","neighbors":{"neighbor":[{"id":"1","state":{"system-name":"spine0","port-id":"Ethernet9","port-id-type":"INTERFACE_NAME",
			"management-address":"10.0.0.9"},"capabilities":{"capability":[{"name":"openconfig-lldp-types:ROUTER","state":{"enabled":true}}]}}]}},
			{"name":"Management1","neighbors":{"neighbor":[{"id":"2","state":{"system-name":"oob","port-id":"7"}}]}}]}`,
	}
	address := startGetter(t, func(_, path string) (any, bool) {
		body, ok := text[path]
		return json.RawMessage(body), ok
	})
	nodes, err := discoverConfig(OpenConfig, "leaf0="+address).Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes) != 1 || len(nodes[0].Ports) != 2 || nodes[0].Ports[0].Rate != 400*model.Gbps || len(nodes[0].Ports[0].Neighbors) != 1 {
		t.Fatalf("nodes are %+v; want one with two ports, the first of 400 Gb/s with a neighbour", nodes)
	}
	if n := nodes[0].Ports[0].Neighbors[0]; n.Node != "spine0" || n.Ports[0] != "Ethernet9" || !n.Forwards || n.Addr.String() != "10.0.0.9" {
		t.Errorf("neighbour is %+v; want the switch spine0, Ethernet9, 10.0.0.9", n)
	}
	if _, err := discoverConfig("sonic", "leaf0="+address).Discover(t.Context()); err == nil || !strings.Contains(err.Error(), "leaf0 at "+address) {
		t.Errorf("a target without SONiC's tables: %v; want an error with its name and address", err)
	}
}
