package serve

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/store"
)

// Dump writes a configuration as a file that Load reads, without tokens: a reader of
// the configuration need not be a user of the API.
func (c *Config) Dump(w io.Writer) error {
	var b strings.Builder
	section, inner := "", ""
	for i := range settings {
		s := &settings[i]
		head, word, nested := strings.Cut(s.Key, ".")
		if !nested {
			head, word = "", s.Key
		}
		if head != section {
			c.dumpRest(&b, section)
			section = head
			fmt.Fprintf(&b, "%s:\n", head)
		}
		indent := ""
		if nested {
			indent = "  "
		}
		sub, rest, deeper := strings.Cut(word, ".")
		if deeper && sub != inner {
			fmt.Fprintf(&b, "%s%s:\n", indent, sub)
		}
		if inner = ""; deeper {
			inner, word, indent = sub, rest, indent+"  "
		}
		value := s.Value(c)
		if s.secret && value != "" {
			fmt.Fprintf(&b, "%s# %s is set and not shown\n", indent, word)
			continue
		}
		fmt.Fprintf(&b, "%s%s: %s\n", indent, word, quote(value))
	}
	c.dumpSwitches(&b)
	c.dumpJobs(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// dumpRest writes the values of a section that are more than one word.
func (c *Config) dumpRest(b *strings.Builder, section string) {
	switch section {
	case "store":
		b.WriteString("  retention:\n")
		for _, kind := range store.Kinds() {
			age := "forever"
			if d, bounded := c.Store.Retention[kind]; bounded {
				age = d.String()
				if days := d / (24 * time.Hour); d%(24*time.Hour) == 0 && days <= math.MaxUint16 {
					age = strconv.Itoa(int(days)) + "d"
				}
			}
			fmt.Fprintf(b, "    %s: %s\n", kind, age)
		}
	case "api":
		if len(c.API.Users) > 0 {
			b.WriteString("  # users, whose tokens are not shown:\n")
		}
		for i := range c.API.Users {
			fmt.Fprintf(b, "  #   %q: %s\n", c.API.Users[i].Name, c.API.Users[i].Role)
		}
		if len(c.API.Tenants) > 0 {
			b.WriteString("  # tenants, whose tokens are not shown:\n")
		}
		for i := range c.API.Tenants {
			t := &c.API.Tenants[i]
			fmt.Fprintf(b, "  #   %s: prefixes %v, hosts %v\n", t.Name, t.Prefixes, t.Hosts)
		}
	case "alerts":
		if n := len(c.Alerts.Targets); n > 0 { // URLs of webhooks are often secret
			fmt.Fprintf(b, "  # %d targets are set and not shown\n", n)
		}
	}
}

func (c *Config) dumpSwitches(b *strings.Builder) {
	if len(c.Switches) == 0 {
		return
	}
	b.WriteString("switches:\n")
	for i := range c.Switches {
		s := &c.Switches[i]
		fmt.Fprintf(b, "  - name: %s\n", quote(s.Name))
		for _, f := range switchFields() {
			if text, given := s.Values[f.key]; given {
				fmt.Fprintf(b, "    %s: %s\n", f.key, quote(text))
			}
		}
	}
}

func (c *Config) dumpJobs(b *strings.Builder) {
	if len(c.Jobs) == 0 {
		return
	}
	b.WriteString("jobs:\n")
	for i := range c.Jobs {
		j := &c.Jobs[i]
		fmt.Fprintf(b, "  - name: %s\n", quote(j.Name))
		if len(j.Hosts) > 0 {
			b.WriteString("    hosts:\n")
		}
		for _, h := range j.Hosts {
			fmt.Fprintf(b, "      - %s\n", quote(h))
		}
		if len(j.Prefixes) > 0 {
			b.WriteString("    prefixes:\n")
		}
		for _, p := range j.Prefixes {
			fmt.Fprintf(b, "      - %q\n", p)
		}
	}
}

// quote puts text in quotes where YAML needs them.
func quote(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("./_-", r)
	}
	if text != "" && !slices.ContainsFunc([]rune(text), func(r rune) bool { return !plain(r) }) && text[0] != '-' && !strings.EqualFold(text, "null") {
		return text
	}
	return strconv.Quote(text)
}
