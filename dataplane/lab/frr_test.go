package lab

import (
	"strings"
	"testing"
)

// TestWithoutFRR: the error says which package is missing.
func TestWithoutFRR(t *testing.T) {
	if err := checkFRR(t.TempDir()); err == nil || !strings.Contains(err.Error(), "install the package frr") {
		t.Errorf("checkFRR of a directory without daemons = %v; want an error that names the package", err)
	}
}
