package serve

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/internal/complaint"
	"github.com/weft-telemetry/weft/store"
	"github.com/weft-telemetry/weft/topo/file/tree"
)

// Source is where a configuration comes from. Later ones win: file, environment,
// flags.
type Source struct {
	File  string                           // empty: none
	Env   func(name string) (string, bool) // nil: none
	Flags map[string]string                // by key of the setting
}

// Load reads a configuration and checks it. What is wrong with the file is a
// complaint with file and line.
func (s Source) Load() (Config, error) {
	c := DefaultConfig()
	lines := map[string]int{}
	if s.File != "" {
		data, err := os.ReadFile(s.File)
		if err != nil {
			return c, complaint.System(s.File, err)
		}
		if err := parse(s.File, data, &c, lines); err != nil {
			return c, err
		}
	}
	for i := range settings {
		one := &settings[i]
		if s.Env != nil {
			if text, given := s.Env(one.Env()); given {
				if err := one.Set(&c, text); err != nil {
					return c, fmt.Errorf("%s: %w", one.Env(), err)
				}
			}
		}
		if text, given := s.Flags[one.Key]; given {
			if err := one.Set(&c, text); err != nil {
				return c, fmt.Errorf("--%s: %w", one.Flag(), err)
			}
		}
	}
	if err := c.Check(); err != nil {
		if s.File != "" {
			return c, &complaint.Error{File: s.File, Line: lineOf(err, lines), Msg: err.Error()}
		}
		return c, err
	}
	return c, nil
}

// lineOf is where the key of a complaint stands; 0: it does not.
func lineOf(err error, lines map[string]int) int {
	var e *KeyError
	if !errors.As(err, &e) {
		return 0
	}
	return lines[e.Key]
}

// maxFile bounds a configuration.
const maxFile = 1 << 20

// parse reads the YAML of a file into c, and notes the lines of keys.
func parse(name string, data []byte, c *Config, lines map[string]int) error {
	if len(data) > maxFile {
		return complaint.Errorf(name, 0, "more than %d bytes, want less", maxFile)
	}
	body, err := tree.Parse(data, "a configuration")
	if fault := (*tree.Fault)(nil); errors.As(err, &fault) {
		return complaint.Errorf(name, fault.Line, "%s", fault.Msg)
	}
	d := decoder{file: name, c: c, lines: lines}
	return d.section("", body)
}

// decoder walks a file, so that every complaint has its line.
type decoder struct {
	file  string
	c     *Config
	lines map[string]int // of keys and sections
}

func (d *decoder) errorf(n ast.Node, format string, args ...any) error {
	return complaint.Errorf(d.file, tree.LineOf(n), format, args...)
}

// pairs are the keys and values of a mapping, each key once.
func (d *decoder) pairs(n ast.Node, what string) ([]*ast.MappingValueNode, error) {
	var list []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		list = m.Values
	case *ast.MappingValueNode:
		list = []*ast.MappingValueNode{m}
	case *ast.NullNode:
		return nil, nil
	default:
		return nil, d.errorf(n, "%s is %s, want keys and values", what, tree.Kind(n))
	}
	seen := map[string]bool{}
	for _, p := range list {
		key, err := tree.Text(p.Key)
		if err != nil {
			return nil, d.errorf(p.Key, "a key %v", err)
		}
		if seen[key] {
			return nil, d.errorf(p.Key, "%s stands here twice, want it once", key)
		}
		seen[key] = true
	}
	return list, nil
}

// section reads the keys below a prefix.
func (d *decoder) section(prefix string, n ast.Node) error {
	list, err := d.pairs(n, strings.TrimSuffix("configuration "+prefix, "."))
	if err != nil {
		return err
	}
	for _, p := range list {
		word, _ := tree.Text(p.Key) // pairs has read it
		key := prefix + word
		d.lines[key] = tree.LineOf(p.Key)
		switch key {
		case "store.retention":
			err = d.retention(p.Value)
		case "switches":
			err = d.each(p.Value, key, d.aSwitch)
		case "jobs":
			err = d.each(p.Value, key, d.job)
		case "api.tenants":
			err = d.each(p.Value, key, d.tenant)
		default:
			err = d.setting(key, p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// setting reads one value, or the section that has the key's name.
func (d *decoder) setting(key string, p *ast.MappingValueNode) error {
	at := slices.IndexFunc(settings, func(s Setting) bool { return s.Key == key })
	if at < 0 {
		if slices.ContainsFunc(settings, func(s Setting) bool { return strings.HasPrefix(s.Key, key+".") }) {
			return d.section(key+".", p.Value)
		}
		return d.errorf(p.Key, "unknown key %s, want one of: %s", key, strings.Join(neighbours(key), ", "))
	}
	text, err := d.words(p.Value, key)
	if err != nil {
		return err
	}
	if err := settings[at].Set(d.c, text); err != nil {
		return d.errorf(p.Value, "%v", err)
	}
	return nil
}

// words is a value, or the values of a list with commas between.
func (d *decoder) words(n ast.Node, what string) (string, error) {
	if list, ok := n.(*ast.SequenceNode); ok {
		var all []string
		for _, v := range list.Values {
			one, err := tree.Text(v)
			if err != nil {
				return "", d.errorf(v, "%s %v", what, err)
			}
			all = append(all, one)
		}
		return strings.Join(all, ","), nil
	}
	text, err := tree.Text(n)
	if err != nil {
		return "", d.errorf(n, "%s %v", what, err)
	}
	return text, nil
}

// neighbours are the keys of the section that an unknown one stands in.
func neighbours(key string) (list []string) {
	prefix := key[:strings.LastIndex(key, ".")+1]
	for _, k := range append(keys(), "store.retention", "switches", "jobs", "api.tenants") {
		rest, in := strings.CutPrefix(k, prefix)
		word, _, _ := strings.Cut(rest, ".")
		if in && !slices.Contains(list, word) {
			list = append(list, word)
		}
	}
	return list
}

func keys() (list []string) {
	for i := range settings {
		list = append(list, settings[i].Key)
	}
	return list
}

// retention reads kinds and ages; forever takes a bound away.
func (d *decoder) retention(n ast.Node) error {
	list, err := d.pairs(n, "store.retention")
	if err != nil {
		return err
	}
	for _, p := range list {
		word, _ := tree.Text(p.Key)
		kind, err := store.ParseKind(word)
		if err != nil {
			return d.errorf(p.Key, "store.retention: %v", err)
		}
		text, err := d.words(p.Value, "store.retention."+word)
		if err != nil {
			return err
		}
		if text == "forever" {
			delete(d.c.Store.Retention, kind)
			continue
		}
		age, err := parseAge(text)
		if err != nil || age <= 0 {
			return d.errorf(p.Value, "store.retention.%s %q, want an age such as 12h or 30d, or forever", word, text)
		}
		d.c.Store.Retention[kind] = age
	}
	return nil
}

// parseAge reads a span of time that may be in days.
func parseAge(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(text)
}

// each reads the items of a list of mappings.
func (d *decoder) each(n ast.Node, what string, one func(at ast.Node, get map[string]ast.Node) error) error {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		return d.errorf(n, "%s is %s, want a list", what, tree.Kind(n))
	}
	for _, item := range list.Values {
		pairs, err := d.pairs(item, what)
		if err != nil {
			return err
		}
		get := map[string]ast.Node{}
		for _, p := range pairs {
			key, _ := tree.Text(p.Key)
			get[key] = p.Value
		}
		if err := one(item, get); err != nil {
			return err
		}
	}
	return nil
}

// fields reads words by their keys and refuses others.
func (d *decoder) fields(at ast.Node, what string, get map[string]ast.Node, wanted ...string) (map[string]string, error) {
	out := map[string]string{}
	for key, n := range get {
		if !slices.Contains(wanted, key) {
			return nil, d.errorf(at, "%s: unknown key %s, want one of: %s", what, key, strings.Join(wanted, ", "))
		}
		text, err := d.words(n, what+" "+key)
		if err != nil {
			return nil, err
		}
		out[key] = text
	}
	return out, nil
}

func (d *decoder) aSwitch(at ast.Node, get map[string]ast.Node) error {
	f, err := d.fields(at, "switches", get, "name", "address", "int", "pad")
	if err != nil {
		return err
	}
	s := Switch{Name: f["name"]}
	if s.Name == "" {
		return d.errorf(at, "switches: one without a name, want the name of a switch of the topology")
	}
	if text, given := f["address"]; given {
		if s.Address, err = netip.ParseAddr(text); err != nil {
			return d.errorf(get["address"], "address %q of %s, want an IP address", text, s.Name)
		}
	}
	if text, given := f["int"]; given {
		n, err := strconv.ParseUint(text, 0, 32)
		if err != nil {
			return d.errorf(get["int"], "int %q of %s, want its number in INT reports", text, s.Name)
		}
		number := uint32(n)
		s.INT = &number
	}
	if text, given := f["pad"]; given {
		n, err := strconv.ParseUint(text, 10, 10)
		if err != nil {
			return d.errorf(get["pad"], "pad %q of %s, want bytes, at most 1023", text, s.Name)
		}
		pad := int(n)
		s.Pad = &pad
	}
	d.c.Switches = append(d.c.Switches, s)
	return nil
}

func (d *decoder) tenant(at ast.Node, get map[string]ast.Node) error {
	f, err := d.fields(at, "api.tenants", get, "name", "token", "prefixes", "hosts")
	if err != nil {
		return err
	}
	t := api.Tenant{Name: f["name"], Token: f["token"]}
	if t.Name == "" || t.Token == "" {
		return d.errorf(at, "api.tenants: one without name or token, want both")
	}
	if t.Prefixes, t.Hosts, err = d.members("tenant "+t.Name, f, get); err != nil {
		return err
	}
	d.c.API.Tenants = append(d.c.API.Tenants, t)
	return nil
}

func (d *decoder) job(at ast.Node, get map[string]ast.Node) error {
	f, err := d.fields(at, "jobs", get, "name", "hosts", "prefixes")
	if err != nil {
		return err
	}
	j := control.Job{Name: f["name"]}
	if j.Prefixes, j.Hosts, err = d.members("job "+j.Name, f, get); err != nil {
		return err
	}
	d.c.Jobs = append(d.c.Jobs, j)
	return nil
}

// members reads whose addresses a tenant's or a job's are.
func (d *decoder) members(whose string, f map[string]string, get map[string]ast.Node) (prefixes []netip.Prefix, hosts []string, err error) {
	for _, text := range strings.FieldsFunc(f["prefixes"], comma) {
		p, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			return nil, nil, d.errorf(get["prefixes"], "prefix %q of %s, want one such as 10.0.1.0/24", text, whose)
		}
		prefixes = append(prefixes, p)
	}
	for _, text := range strings.FieldsFunc(f["hosts"], comma) {
		hosts = append(hosts, strings.TrimSpace(text))
	}
	return prefixes, hosts, nil
}

func comma(r rune) bool { return r == ',' }
