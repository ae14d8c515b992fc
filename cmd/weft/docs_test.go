package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/repro"
)

// shown matches a command line in a page: in backquotes, or a line of a block.
var shown = regexp.MustCompile("`(weft [^`]+)`|(?m:^\\s*(?:\\$ )?(?:bin/)?(weft .+)$)")

// TestDocsNameCommandsThatExist: every command that a page shows is one of
// ours, with flags it has, claims and suites there are, and files of this tree.
func TestDocsNameCommandsThatExist(t *testing.T) {
	root := os.DirFS("../..")
	pages := []string{"README.md", "deploy/sonic.md"}
	err := fs.WalkDir(root, "docs", func(name string, _ fs.DirEntry, err error) error {
		if filepath.Ext(name) == ".md" {
			pages = append(pages, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, page := range pages {
		text, err := fs.ReadFile(root, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range shown.FindAllStringSubmatch(string(text), -1) {
			line, _, _ := strings.Cut(m[1]+m[2], " #")
			n++
			for _, fault := range commandFaults(root, strings.Fields(line)[1:]) {
				t.Errorf("%s: %s: %s", page, line, fault)
			}
		}
	}
	if n < 80 {
		t.Errorf("%d commands seen; want those of all pages", n)
	}
}

// example matches a command line in a help text.
var example = regexp.MustCompile(`(?m:^  (weft .+)$)`)

// TestHelpNamesCommandsThatExist: the same of the examples that commands have.
func TestHelpNamesCommandsThatExist(t *testing.T) {
	n := 0
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		for _, m := range example.FindAllStringSubmatch(cmd.Long+"\n"+cmd.Example, -1) {
			line, _, _ := strings.Cut(m[1], "  ") // a description follows
			n++
			for _, fault := range commandFaults(os.DirFS("../.."), strings.Fields(line)[1:]) {
				t.Errorf("%s --help: %s: %s", cmd.CommandPath(), line, fault)
			}
		}
		for _, sub := range cmd.Commands() {
			check(sub)
		}
	}
	check((&app{papers: repro.Papers()}).command())
	if n < 60 {
		t.Errorf("%d examples seen; want those of all commands", n)
	}
}

// recordID matches the id of a record, which a command with subcommands may take instead.
var recordID = regexp.MustCompile(`^(ID|[a-z]\d+)$`)

// commandFaults lists the commands, flags, arguments and files of a command line,
// without its first word, that do not exist.
func commandFaults(root fs.FS, words []string) (list []string) {
	weft := (&app{papers: repro.Papers()}).command()
	weft.InitDefaultHelpCmd()
	weft.InitDefaultCompletionCmd()
	cmd, rest, err := weft.Find(words)
	if err != nil || cmd.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") && !(cmd.Runnable() && recordID.MatchString(rest[0])) {
		return []string{"no such command"}
	}
	cmd.InitDefaultHelpFlag()
	for i, word := range rest {
		name, isFlag := strings.CutPrefix(word, "--")
		name, _, _ = strings.Cut(strings.TrimRight(name, ".,;:"), "=")
		switch {
		case isFlag && name != "" && cmd.Flag(name) == nil && cmd.InheritedFlags().Lookup(name) == nil:
			list = append(list, "no flag --"+name)
		case strings.HasPrefix(word, "examples/"), strings.HasPrefix(word, "deploy/"):
			if _, err := fs.Stat(root, word); err != nil {
				list = append(list, "no file "+word)
			}
		case i == 0 && len(cmd.ValidArgs) > 0 && !isFlag && strings.ToLower(word) == word:
			if !slices.ContainsFunc(cmd.ValidArgs, func(arg string) bool { known, _, _ := strings.Cut(arg, "\t"); return known == word }) {
				list = append(list, "no "+cmd.Name()+" of "+word)
			}
		}
	}
	return list
}

// TestCommandFaultsCanBeFound breaks a command line in every part.
func TestCommandFaultsCanBeFound(t *testing.T) {
	for line, want := range map[string]string{
		"rum examples/incast.yaml":          "no such command",
		"topo gem clos":                     "no such command",
		"incidents akc i12":                 "no such command",
		"incidents ack i12":                 "",
		"incidents i12":                     "",
		"run examples/incast.yaml --outt x": "no flag --outt",
		"run examples/incats.yaml":          "no file examples/incats.yaml",
		"repro flowradar-pears":             "no repro of flowradar-pears",
		"bench simm":                        "no bench of simm",
		"run examples/incast.yaml --out x":  "",
		"bench sim -o json":                 "",
	} {
		if got := strings.Join(commandFaults(os.DirFS("../.."), strings.Fields(line)), ", "); got != want {
			t.Errorf("weft %s: %q; want %q", line, got, want)
		}
	}
}
