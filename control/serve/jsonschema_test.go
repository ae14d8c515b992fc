package serve

import (
	"os"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/internal/jsonschema/check"
)

// TestJSONSchema: the schema takes what is read, and nothing else: the shipped file, a
// dump of the defaults, a file with every list; each setting has a description.
func TestJSONSchema(t *testing.T) {
	s, err := check.Compile(JSONSchema())
	if err != nil {
		t.Fatal(err)
	}
	shipped, err := os.ReadFile("../../deploy/serve.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var dumped strings.Builder
	defaults := DefaultConfig()
	if err := defaults.Dump(&dumped); err != nil {
		t.Fatal(err)
	}
	lists := `topology: fabric.yaml
dta: {listen: 127.0.0.1:41040}
api:
  hosts: [a.example, b.example]
  users: [{name: alice, role: admin, token: 0123456789abcdef}]
  tenants: [{name: t, token: 0123456789abcdef, prefixes: [10.0.0.0/8], hosts: h1}]
store: {retention: {flows: 12h, incidents: forever}}
alerts: {targets: [{kind: webhook, url: "http://x.example/", token_file: /etc/weft/token, jobs: [training]}]}
jobs: [{name: training, hosts: [h1, h2]}]
switches: [{name: leaf1, address: 192.0.2.1}]
log:
`
	for name, text := range map[string]string{"deploy/serve.yaml": string(shipped), "dump": dumped.String(), "lists": lists} {
		if err := s.CheckYAML([]byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		c := DefaultConfig()
		if err := parse(name, []byte(text), &c, map[string]int{}); err != nil {
			t.Errorf("%s is not read: %v", name, err)
		}
	}
	for _, text := range []string{
		"topolgy: f", "api: {lisen: x}", "store: {retention: {flow: 1h}}", "jobs: [{name: a, host: b}]",
		"controller: {slot: fast}", "api: {users: [{role: root}]}", "store: {repair: perhaps}", "api: {oidc: {isuer: x}}",
	} {
		if s.CheckYAML([]byte(text)) == nil {
			t.Errorf("%s: the schema takes it", text)
		}
		c := DefaultConfig()
		if err := parse("f", []byte(text), &c, map[string]int{}); err == nil {
			t.Errorf("%s: it is read", text)
		}
	}
	for _, path := range s.WithoutDescription() {
		t.Errorf("%s has no description", path)
	}
}
