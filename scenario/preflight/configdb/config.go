// Package configdb reads what SONiC's CONFIG_DB says about lossless traffic (ports,
// PFC, DSCP maps, ECN, buffer profiles) and compares switches with each other, with
// the settings of hosts and with their fabric. It knows the tables of config_db.json, not Redis.
// docs/check.md describes it for users.
package configdb

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Config is what the CONFIG_DB of one switch says about lossless traffic.
type Config struct {
	Hostname string // of DEVICE_METADATA; may be empty
	Ports    map[string]*Port
	DSCP     map[string]map[int]int // by map: DSCP to traffic class
}

// Port is the configuration of one interface. What is not set is zero.
type Port struct {
	MTU      model.Bytes
	Speed    model.Rate
	PFC      uint8 // priorities, one bit each
	HasPFC   bool  // the port is in PORT_QOS_MAP
	DSCPMap  string
	Cable    time.Duration    // propagation over the length in CABLE_LENGTH
	ECN      map[int]*Marking // by queue
	Headroom map[int]*Profile // by priority group
}

// Marking is a WRED profile with ECN.
type Marking struct {
	Profile    string
	Kmin, Kmax model.Bytes
	Pmax       int // percent
	ECN        bool
}

// Profile is a buffer profile of a priority group.
type Profile struct {
	Name string
	Xoff model.Bytes // SONiC's name for headroom
}

// perMetre is the propagation of light in glass.
const perMetre = 5 * time.Nanosecond

// table is a table of the file: key, field, value.
type table map[string]map[string]string

// reader reads tables and keeps the first error.
type reader struct {
	name string
	file map[string]json.RawMessage
	err  error
}

// Parse reads a config_db.json. The name is for errors. Tables that do not matter
// here are not read.
func Parse(name string, data []byte) (*Config, error) {
	r := &reader{name: name}
	if err := json.Unmarshal(data, &r.file); err != nil {
		return nil, fmt.Errorf("%s: %w, want the JSON of CONFIG_DB", name, err)
	}
	c := &Config{Ports: make(map[string]*Port), DSCP: make(map[string]map[int]int)}
	c.Hostname = r.table("DEVICE_METADATA")["localhost"]["hostname"]
	r.readPorts(c)
	r.readMaps(c)
	r.readECN(c)
	r.readHeadroom(c)
	if r.err == nil && len(c.Ports) == 0 {
		r.err = fmt.Errorf("%s: no table PORT, want the JSON of CONFIG_DB", name)
	}
	return c, r.err
}

func (r *reader) fail(at, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: %s: %s", r.name, at, fmt.Sprintf(format, args...))
	}
}

// table returns a table without the fields that are not strings, such as lists of
// members: none of them matters here.
func (r *reader) table(name string) table {
	raw, ok := r.file[name]
	if !ok {
		return nil
	}
	var rows map[string]map[string]json.RawMessage
	if err := json.Unmarshal(raw, &rows); err != nil {
		r.fail(name, "%v, want keys with fields", err)
		return nil
	}
	out := make(table, len(rows))
	for key, fields := range rows {
		out[key] = make(map[string]string, len(fields))
		for field, v := range fields {
			var s string
			if json.Unmarshal(v, &s) == nil {
				out[key][field] = s
			}
		}
	}
	return out
}

// number returns a whole number of a field; 0 where it is not set.
func (r *reader) number(t table, name, key, field string, most int64) int64 {
	s, ok := t[key][field]
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	if err != nil || n < 0 || n > most {
		r.fail(name+"|"+key, "%s %q, want a number from 0 to %d", field, s, most)
		return 0
	}
	return n
}

// Bounds of values. They keep every product within 64 bits.
const (
	maxMbps  = 10_000_000
	maxBytes = 1 << 40
	maxMetre = 1_000_000
)

func (r *reader) readPorts(c *Config) {
	ports := r.table("PORT")
	for name := range ports {
		c.Ports[name] = &Port{
			MTU:   model.Bytes(r.number(ports, "PORT", name, "mtu", 1<<16)),
			Speed: model.Rate(r.number(ports, "PORT", name, "speed", maxMbps)) * model.Mbps,
			ECN:   make(map[int]*Marking), Headroom: make(map[int]*Profile),
		}
	}
	for _, lengths := range r.table("CABLE_LENGTH") {
		for name, text := range lengths {
			n, err := strconv.ParseInt(strings.TrimSuffix(text, "m"), 10, 64)
			if err != nil || n < 0 || n > maxMetre {
				r.fail("CABLE_LENGTH", "%s %q, want metres such as 40m", name, text)
				return
			}
			if p := c.Ports[name]; p != nil {
				p.Cable = time.Duration(n) * perMetre
			}
		}
	}
}

// readMaps reads PFC and DSCP maps of ports.
func (r *reader) readMaps(c *Config) {
	qos := r.table("PORT_QOS_MAP")
	for key, fields := range qos {
		for _, name := range strings.Split(key, ",") {
			p := c.Ports[name]
			if p == nil {
				continue
			}
			p.HasPFC, p.DSCPMap = true, unlink(fields["dscp_to_tc_map"])
			for _, prio := range strings.FieldsFunc(fields["pfc_enable"], func(x rune) bool { return x == ',' || x == ' ' }) {
				n, err := strconv.Atoi(prio)
				if err != nil || n < 0 || n > 7 {
					r.fail("PORT_QOS_MAP|"+key, "pfc_enable %q, want priorities from 0 to 7 such as 3,4", fields["pfc_enable"])
					return
				}
				p.PFC |= 1 << n
			}
		}
	}
	for name, fields := range r.table("DSCP_TO_TC_MAP") {
		c.DSCP[name] = make(map[int]int)
		for dscp, class := range fields {
			d, err1 := strconv.Atoi(dscp)
			tc, err2 := strconv.Atoi(class)
			if err1 != nil || err2 != nil || d < 0 || d > 63 || tc < 0 || tc > 15 {
				r.fail("DSCP_TO_TC_MAP|"+name, "%q to %q, want a DSCP from 0 to 63 and a traffic class", dscp, class)
				return
			}
			c.DSCP[name][d] = tc
		}
	}
}

func (r *reader) readECN(c *Config) {
	wred := r.table("WRED_PROFILE")
	for key, fields := range r.table("QUEUE") {
		name := unlink(fields["wred_profile"])
		if name == "" {
			continue
		}
		if _, ok := wred[name]; !ok {
			r.fail("QUEUE|"+key, "wred_profile %q, want one of %s", name, names(wred))
			return
		}
		m := &Marking{
			Profile: name, Kmin: model.Bytes(r.number(wred, "WRED_PROFILE", name, "green_min_threshold", maxBytes)),
			Kmax: model.Bytes(r.number(wred, "WRED_PROFILE", name, "green_max_threshold", maxBytes)),
			Pmax: int(r.number(wred, "WRED_PROFILE", name, "green_drop_probability", 100)),
			ECN:  strings.HasPrefix(wred[name]["ecn"], "ecn_") && wred[name]["ecn"] != "ecn_none",
		}
		r.each(c, "QUEUE", key, func(p *Port, queue int) { p.ECN[queue] = m })
	}
}

func (r *reader) readHeadroom(c *Config) {
	profiles := r.table("BUFFER_PROFILE")
	for key, fields := range r.table("BUFFER_PG") {
		name := unlink(fields["profile"])
		if _, ok := profiles[name]; !ok {
			continue // computed by the switch, or NULL
		}
		if _, lossless := profiles[name]["xoff"]; !lossless {
			continue
		}
		b := &Profile{name, model.Bytes(r.number(profiles, "BUFFER_PROFILE", name, "xoff", maxBytes))}
		r.each(c, "BUFFER_PG", key, func(p *Port, group int) { p.Headroom[group] = b })
	}
}

// each calls set for each port and number of a key such as "Ethernet0,Ethernet4|3-4".
func (r *reader) each(c *Config, table, key string, set func(p *Port, n int)) {
	ports, span, ok := strings.Cut(key, "|")
	low, high, isRange := strings.Cut(span, "-")
	if !isRange {
		high = low
	}
	first, err1 := strconv.Atoi(low)
	last, err2 := strconv.Atoi(high)
	if !ok || err1 != nil || err2 != nil || first < 0 || last < first || last > 63 {
		r.fail(table+"|"+key, "want ports and numbers such as Ethernet0|3-4")
		return
	}
	for _, name := range strings.Split(ports, ",") {
		if p := c.Ports[name]; p != nil {
			for n := first; n <= last; n++ {
				set(p, n)
			}
		}
	}
}

// unlink returns the name of a reference: older files write [TABLE|NAME].
func unlink(ref string) string {
	ref = strings.TrimSuffix(strings.TrimPrefix(ref, "["), "]")
	return ref[strings.LastIndex(ref, "|")+1:]
}

func names(t table) string {
	if len(t) == 0 {
		return "those of a table that is missing"
	}
	return strings.Join(slices.Sorted(maps.Keys(t)), ", ")
}
