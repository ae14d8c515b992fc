package gnmi

import (
	"slices"

	gnmipb "github.com/openconfig/gnmi/proto/gnmi"

	"github.com/weft-telemetry/weft/ingest/sai"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
)

// subscription is the request for a switch's counters. Tables of queues come before
// that of the port, whose arrival makes a reading.
func (c *Config) subscription(sw *source.Switch) *gnmipb.SubscribeRequest {
	list := &gnmipb.SubscriptionList{Mode: gnmipb.SubscriptionList_STREAM, Encoding: gnmipb.Encoding_JSON_IETF}
	add := func(p *gnmipb.Path) {
		list.Subscription = append(list.Subscription, &gnmipb.Subscription{
			Path: p, Mode: gnmipb.SubscriptionMode_SAMPLE, SampleInterval: uint64(c.Interval),
		})
	}
	if c.Model == OpenConfig {
		add(openconfigPath("qos", "interfaces", "interface", "output", "queues", "queue", "state"))
		add(openconfigPath("interfaces", "interface", "state", "ifindex"))
		add(openconfigPath("interfaces", "interface", "state", "counters"))
		return &gnmipb.SubscribeRequest{Request: &gnmipb.SubscribeRequest_Subscribe{Subscribe: list}}
	}
	list.Prefix = &gnmipb.Path{Target: "COUNTERS_DB"}
	ports := []string{"Ethernet*"}
	if c.Subscribe != ByTable {
		ports = nil
		for p := 1; p <= sw.Ports; p++ {
			ports = append(ports, sw.PortName(model.PortID(p)))
		}
	}
	for _, port := range ports {
		add(elements("PERIODIC_WATERMARKS", port, "PriorityGroups"))
		add(elements("COUNTERS", port, "Queues"))
		add(elements("COUNTERS", port, "Pfcwd"))
		if c.Subscribe != ByField {
			add(elements("COUNTERS", port))
			continue
		}
		names := sai.Names()
		slices.Sort(names)
		for _, name := range names {
			if name != tick {
				add(elements("COUNTERS", port, name))
			}
		}
		add(elements("COUNTERS", port, tick))
	}
	return &gnmipb.SubscribeRequest{Request: &gnmipb.SubscribeRequest_Subscribe{Subscribe: list}}
}

func elements(names ...string) *gnmipb.Path {
	p := &gnmipb.Path{}
	for _, n := range names {
		p.Elem = append(p.Elem, &gnmipb.PathElem{Name: n})
	}
	return p
}

// keys are the list keys of OpenConfig's paths, by the element before.
var keys = map[string]string{"interface": "name", "queue": "name"}

// openconfigPath is a path for all entries of its lists.
func openconfigPath(names ...string) *gnmipb.Path {
	p := elements(names...)
	for _, e := range p.Elem {
		if key, ok := keys[e.Name]; ok {
			if names[0] == "qos" && e.Name == "interface" {
				key = "interface-id"
			}
			e.Key = map[string]string{key: "*"}
		}
	}
	return p
}
