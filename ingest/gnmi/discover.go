package gnmi

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	gnmipb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo/discover"
)

// Discover asks every target of the configuration for its interfaces, their speeds and
// their LLDP neighbours, in the order of the targets.
func (c *Config) Discover(ctx context.Context) (nodes []discover.Node, err error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	creds, err := c.credentials()
	if err != nil {
		return nil, err
	}
	user, err := c.user()
	if err != nil {
		return nil, err
	}
	ctx = metadata.AppendToOutgoingContext(ctx, user...)
	for _, text := range c.Targets {
		name, address, err := splitTarget(text)
		if err != nil {
			return nil, err
		}
		n, err := c.discover(ctx, name, address, grpc.WithTransportCredentials(creds), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)))
		if err != nil {
			return nil, fmt.Errorf("%s at %s: %w", name, address, err)
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

func (c *Config) discover(ctx context.Context, name, address string, options ...grpc.DialOption) (n discover.Node, err error) {
	conn, err := grpc.NewClient("passthrough:///"+address, options...)
	if err != nil {
		return n, err
	}
	defer conn.Close()
	n = discover.Node{Name: name, Switch: true}
	if a, err := netip.ParseAddrPort(address); err == nil {
		n.Addr = a.Addr()
	}
	client := gnmipb.NewGNMIClient(conn)
	if c.Model == OpenConfig {
		return n, discoverOpenConfig(ctx, client, &n)
	}
	return n, discoverSONiC(ctx, client, &n)
}

// getJSON reads one path as JSON. A table may come in several updates, and an empty one in
// none.
func getJSON(ctx context.Context, client gnmipb.GNMIClient, prefix, path *gnmipb.Path, to any) error {
	resp, err := client.Get(ctx, &gnmipb.GetRequest{Prefix: prefix, Path: []*gnmipb.Path{path}, Encoding: gnmipb.Encoding_JSON_IETF})
	if err != nil {
		return err
	}
	for _, note := range resp.GetNotification() {
		for _, u := range note.GetUpdate() {
			v, ok := valueOf(u)
			if !ok || v.json == nil {
				return fmt.Errorf("answer to %v is not JSON", pathText(path))
			}
			if err := json.Unmarshal(v.json, to); err != nil {
				return fmt.Errorf("answer to %v: %w", pathText(path), err)
			}
		}
	}
	return nil
}

func pathText(p *gnmipb.Path) string {
	text := ""
	for _, e := range p.GetElem() {
		text += "/" + e.GetName()
	}
	return text
}

// discoverSONiC reads the port table of CONFIG_DB and the LLDP table of APPL_DB.
func discoverSONiC(ctx context.Context, client gnmipb.GNMIClient, n *discover.Node) error {
	var ports map[string]struct {
		Alias string `json:"alias"`
		Speed string `json:"speed"` // Mb/s
	}
	if err := getJSON(ctx, client, &gnmipb.Path{Target: "CONFIG_DB"}, elements("PORT"), &ports); err != nil {
		return err
	}
	var heard map[string]struct {
		Node        string `json:"lldp_rem_sys_name"`
		Chassis     string `json:"lldp_rem_chassis_id"`
		Port        string `json:"lldp_rem_port_id"`
		PortType    string `json:"lldp_rem_port_id_subtype"`
		Description string `json:"lldp_rem_port_desc"`
		Addresses   string `json:"lldp_rem_man_addr"`
		Enabled     string `json:"lldp_rem_sys_cap_enabled"` // two octets, "28 00"
	}
	if err := getJSON(ctx, client, &gnmipb.Path{Target: "APPL_DB"}, elements("LLDP_ENTRY_TABLE"), &heard); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(ports)) {
		p := discover.Port{Name: name, Alias: ports[name].Alias}
		if mbps, err := strconv.ParseUint(ports[name].Speed, 10, 32); err == nil {
			p.Rate = model.Rate(mbps) * model.Mbps
		}
		if h, ok := heard[name]; ok {
			peer := discover.Neighbor{Node: h.Node, Forwards: forwards(h.Enabled)}
			if peer.Node == "" {
				peer.Node = h.Chassis
			}
			for _, text := range strings.Split(h.Addresses, ",") {
				if a, err := netip.ParseAddr(strings.TrimSpace(text)); err == nil && a.Is4() && !peer.Addr.IsValid() {
					peer.Addr = a
				}
			}
			// Subtype 5 is an interface's name; SONiC itself sends an alias (7), and the name as
			// the description.
			peer.Ports = []string{h.Description, h.Port}
			if h.PortType == "5" || h.Description == "" {
				peer.Ports = []string{h.Port, h.Description}
			}
			p.Neighbors = []discover.Neighbor{peer}
		}
		n.Ports = append(n.Ports, p)
	}
	return nil
}

// forwards reports whether LLDP's enabled capabilities have bridge or router.
func forwards(octets string) bool {
	first, _, _ := strings.Cut(octets, " ")
	bits, err := strconv.ParseUint(first, 16, 8)
	// Bit 0 is the most significant of the first octet, as in a MIB: bridge is 2, router 4.
	return err == nil && bits&(0x20|0x08) != 0
}
