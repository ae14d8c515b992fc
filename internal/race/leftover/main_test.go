package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLeftover finds tests that leave something out in any way.
func TestLeftover(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a_test.go": `package a
import "internal/race"
var many = race.Less(20, 3)
func TestSkips(t *testing.T) { race.LeaveToPlainRun(t) }
func TestByVariable(t *testing.T) { for range many {} }
func TestByTable(t *testing.T) { for _, a := range attacks { a.do(t) } }
func TestWhole(t *testing.T) { help(t) }
func help(t *testing.T) {}`,
		"b_test.go": `package a_test
var attacks = []attack{{(*army).march}}
func (a *army) march(t *testing.T) { for range many {} }
func TestInBrowser(t *testing.T) { browsertest.Need(t, "web") }
func FuzzSome(f *testing.F) { race.LeaveToPlainRun(f) }`,
		"c.go": `package a
func TestNotATest() { race.Less(1, 2) }`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := leftover(dir)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"TestByTable", "TestByVariable", "TestInBrowser", "TestSkips"}, got); diff != "" {
		t.Errorf("tests (-want +got):\n%s", diff)
	}
}
