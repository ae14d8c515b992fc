package serve

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/alerts"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/ingest/sources"
	"github.com/weft-telemetry/weft/internal/fileerror"
	"github.com/weft-telemetry/weft/store"
	"github.com/weft-telemetry/weft/topo/file/tree"
)

// maxFile is the size limit of a configuration.
const maxFile = 1 << 20

// parse reads the YAML of a file into c, and notes the lines of keys.
func parse(name string, data []byte, c *Config, lines map[string]int) error {
	if len(data) > maxFile {
		return fileerror.Errorf(name, 0, "more than %d bytes, want less", maxFile)
	}
	root, err := tree.Parse(name, data, "a configuration")
	if err != nil {
		return err
	}
	d := decoder{c: c, lines: lines}
	return d.section("", root)
}

// decoder walks a file, so that every error has its line.
type decoder struct {
	c     *Config
	lines map[string]int // of keys and sections
}

// entries are the keys and values of a section, which may be empty.
func entries(v tree.Value, what string) ([]tree.Entry, error) {
	if v.IsEmpty() {
		return nil, nil
	}
	return v.Entries(what)
}

// section reads the keys below a prefix.
func (d *decoder) section(prefix string, v tree.Value) error {
	what := strings.TrimSuffix(prefix, ".")
	if prefix == "" {
		what = "the file"
	}
	list, err := entries(v, what)
	if err != nil {
		return err
	}
	for _, e := range list {
		key := prefix + e.Key
		d.lines[key] = e.KeyPosition().Line
		i := slices.IndexFunc(itemLists, func(l itemList) bool { return l.key == key })
		switch {
		case key == retentionKey:
			err = d.retention(e.Value)
		case i >= 0:
			err = eachItem(e.Value, key, func(it item) error { return itemLists[i].read(d, it) }, itemLists[i].keys()...)
		default:
			err = d.setting(key, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// setting reads one value, or the section that has the key's name.
func (d *decoder) setting(key string, e tree.Entry) error {
	at := slices.IndexFunc(settings, func(s Setting) bool { return s.Key == key })
	if at < 0 {
		if slices.ContainsFunc(settings, func(s Setting) bool { return strings.HasPrefix(s.Key, key+".") }) {
			return d.section(key+".", e.Value)
		}
		return e.KeyPosition().Errorf("unknown key %s, want one of: %s", key, strings.Join(neighbours(key), ", "))
	}
	text, err := words(e.Value, key)
	if err != nil {
		return err
	}
	if err := settings[at].Set(d.c, text); err != nil {
		return e.Errorf("%v", err)
	}
	return nil
}

// words is a value, or the values of a list with commas between.
func words(v tree.Value, what string) (string, error) {
	if !v.IsList() {
		return v.Text(what)
	}
	list, err := v.List(what)
	if err != nil {
		return "", err
	}
	all := make([]string, len(list))
	for i, item := range list {
		if all[i], err = item.Text(what); err != nil {
			return "", err
		}
	}
	return strings.Join(all, ","), nil
}

// neighbours are the keys of the section that an unknown one stands in.
func neighbours(key string) (list []string) {
	prefix := key[:strings.LastIndex(key, ".")+1]
	all := append(keys(), retentionKey)
	for i := range itemLists {
		all = append(all, itemLists[i].key)
	}
	for _, k := range all {
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
func (d *decoder) retention(v tree.Value) error {
	list, err := entries(v, "store.retention")
	if err != nil {
		return err
	}
	for _, e := range list {
		kind, err := store.ParseKind(e.Key)
		if err != nil {
			return e.KeyPosition().Errorf("store.retention: %v", err)
		}
		text, err := e.Text("store.retention." + e.Key)
		if err != nil {
			return err
		}
		if text == "forever" {
			delete(d.c.Store.Retention, kind)
			continue
		}
		age, err := parseAge(text)
		if err != nil || age <= 0 {
			return e.Errorf("store.retention.%s %q, want an age such as 12h or 30d, or forever", e.Key, text)
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

// item is one of a list of mappings, whose values are words.
type item struct {
	tree.Value
	get map[string]word
}

// word is a value as text; it is zero where the file has none.
type word struct {
	fileerror.Position
	text string
}

// eachItem reads the items of a list of mappings that have only these keys.
func eachItem(v tree.Value, what string, one func(item) error, keys ...string) error {
	list, err := v.List(what)
	if err != nil {
		return err
	}
	for _, v := range list {
		fields, err := v.Fields(what, keys...)
		if err != nil {
			return err
		}
		it := item{v, make(map[string]word)}
		for key, f := range fields {
			text, err := words(f, what+" "+key)
			if err != nil {
				return err
			}
			it.get[key] = word{f.Position, text}
		}
		if err := one(it); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) switchItem(it item) error {
	s := Switch{Name: it.get["name"].text, Values: map[string]string{}}
	if s.Name == "" {
		return it.Errorf("switches: one without a name, want the name of a switch of the topology")
	}
	for _, src := range sources.All() {
		for _, k := range src.SwitchKeys {
			w, given := it.get[k.Key]
			if !given {
				continue
			}
			if !k.Ok(w.text) {
				return w.Errorf("%s %q of %s, want %s", k.Key, w.text, s.Name, k.Want)
			}
			s.Values[k.Key] = w.text
		}
	}
	d.c.Switches = append(d.c.Switches, s)
	return nil
}

func (d *decoder) tenant(it item) (err error) {
	t := api.Tenant{Name: it.get["name"].text, Token: it.get["token"].text}
	if t.Name == "" || t.Token == "" {
		return it.Errorf("api.tenants: one without name or token, want both")
	}
	if t.Prefixes, t.Hosts, err = members("tenant "+t.Name, it); err != nil {
		return err
	}
	d.c.API.Tenants = append(d.c.API.Tenants, t)
	return nil
}

func (d *decoder) user(it item) error {
	u := api.User{Name: it.get["name"].text, Role: it.get["role"].text, Token: it.get["token"].text}
	if err := u.Check(); err != nil {
		return it.Errorf("api.users: %v", err)
	}
	d.c.API.Users = append(d.c.API.Users, u)
	return nil
}

func (d *decoder) alertTarget(it item) error {
	t := alerts.Target{Kind: it.get["kind"].text, URL: it.get["url"].text, Token: it.get["token"].text, TokenFile: it.get["token_file"].text}
	for _, name := range strings.FieldsFunc(it.get["jobs"].text, comma) {
		t.Jobs = append(t.Jobs, strings.TrimSpace(name))
	}
	if err := t.Check(); err != nil {
		return it.Errorf("alerts.targets: %v", err)
	}
	d.c.Alerts.Targets = append(d.c.Alerts.Targets, t)
	return nil
}

func (d *decoder) job(it item) (err error) {
	j := control.Job{Name: it.get["name"].text}
	if j.Prefixes, j.Hosts, err = members("job "+j.Name, it); err != nil {
		return err
	}
	d.c.Jobs = append(d.c.Jobs, j)
	return nil
}

// members reads whose addresses a tenant's or a job's are.
func members(whose string, it item) (prefixes []netip.Prefix, hosts []string, err error) {
	w := it.get["prefixes"]
	for _, text := range strings.FieldsFunc(w.text, comma) {
		p, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			return nil, nil, w.Errorf("prefix %q of %s, want one such as 10.0.1.0/24", text, whose)
		}
		prefixes = append(prefixes, p)
	}
	for _, text := range strings.FieldsFunc(it.get["hosts"].text, comma) {
		hosts = append(hosts, strings.TrimSpace(text))
	}
	return prefixes, hosts, nil
}

func comma(r rune) bool { return r == ',' }
