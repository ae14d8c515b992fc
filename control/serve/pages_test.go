package serve

import (
	"os"
	"regexp"
	"testing"
)

// yamlBlock matches a block of configuration in a page.
var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// TestPagesShowConfigurations: what pages about sources show is a configuration, key by key.
func TestPagesShowConfigurations(t *testing.T) {
	for _, page := range []string{"../../deploy/sonic.md", "../../docs/sources.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		blocks := yamlBlock.FindAllSubmatch(text, -1)
		if len(blocks) < 4 {
			t.Errorf("%s has %d blocks; want one for each source", page, len(blocks))
		}
		for _, b := range blocks {
			c := DefaultConfig()
			if err := parse(page, append([]byte("topology: fabric.yaml\n"), b[1]...), &c, map[string]int{}); err != nil {
				t.Errorf("%v in\n%s", err, b[1])
			}
		}
	}
}
