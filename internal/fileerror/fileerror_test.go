package fileerror

import (
	"errors"
	"io/fs"
	"os"
	"testing"
)

func TestText(t *testing.T) {
	_, missing := os.Open("no/such/file")
	for want, err := range map[string]*Error{
		"a.yaml:7: size 3, want 4":                      Errorf("a.yaml", 7, "size %d, want %d", 3, 4),
		"a.yaml: too long":                              {File: "a.yaml", Msg: "too long"},
		"no/such/file: open: no such file or directory": FromOS("no/such/file", missing),
		"pipe: closed":                                  FromOS("pipe", errors.New("closed")),
	} {
		if err.Error() != want {
			t.Errorf("Error() = %q; want %q", err, want)
		}
	}
	if !errors.Is(FromOS("no/such/file", missing), fs.ErrNotExist) {
		t.Error("FromOS hides the operating system's error")
	}
}
