package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/ingest/keyfile"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/topo/file"
)

func (a *app) keysCommand() *cobra.Command {
	return commandGroup(&cobra.Command{
		Use:   "keys",
		Short: "Make, rotate and check the secret keys of reporters and translators",
		Long: `Make, rotate and check the key file, with which reporters and translators prove to a
collector who they are, and the collector to translators. It has a line NAME KEYID HEX
for each key: a name is a node of the topology or a translator, and has one or two keys.
The first signs, both verify.

A key file is secret: its mode must be 600. No command prints a secret. A reporter
or translator needs its own lines only.

To replace keys while reports arrive:
  1. weft keys rotate at the collector, then SIGHUP: old and new keys are valid
  2. copy the new lines to reporters and translators: they sign with the new keys
  3. weft keys retire at the collector, then SIGHUP: the old keys are not valid any more`,
	}, a.keysNewCommand(), a.keysRotateCommand(), a.keysRetireCommand(), a.keysCheckCommand())
}

func (a *app) keysNewCommand() *cobra.Command {
	var path string
	var translators []string
	cmd := &cobra.Command{
		Use:   "new TOPOLOGY",
		Short: "Write a new key file for every switch and host of a topology",
		Long: `Write a new key file with a key for every switch and host of a topology, and for
translators. An existing file is not replaced.`,
		Example: `  weft keys new fabric.yaml
  weft keys new fabric.yaml -f /etc/weft/weft.keys --name translator0 --name translator1`,
		Args: argumentCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			doc, err := file.Read(args[0])
			if err != nil {
				return err
			}
			names := nodeNames(doc)
			for _, name := range translators {
				if err := keyfile.CheckName(name); err != nil {
					return usagef("--name: %w", err)
				}
				if slices.Contains(names, name) {
					return usagef("--name %s, want a name that is neither in the topology nor repeated", name)
				}
				names = append(names, name)
			}
			keys := keyfile.Generate(names, nil)
			if err := keys.Write(path); err != nil {
				return err
			}
			return a.printKeyChange(cmd.OutOrStdout(), keyChange{File: path, Names: names, Added: len(names)})
		},
	}
	cmd.Flags().StringVarP(&path, "file", "f", "weft.keys", "file to write")
	cmd.Flags().StringArrayVar(&translators, "name", nil, "also make a key for this translator; repeatable")
	return cmd
}

func (a *app) keysRotateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rotate FILE [NAME...]",
		Short: "Add new keys that sign, and keep the previous ones valid",
		Long: `Add a new key for each NAME, or for all names of the file. It signs; the key that
signed before stays valid, and one before that is dropped.`,
		Example: `  weft keys rotate /etc/weft/weft.keys
  weft keys rotate /etc/weft/weft.keys tor0 h3`,
		Args: argumentCount(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changeKeys(cmd, args, func(keys *keyfile.File, names []string) (c keyChange, err error) {
				c.Added = len(names)
				for _, name := range names {
					c.Dropped += len(keys.Keys(name)) - 1
				}
				return c, keys.Rotate(nil, names...)
			})
		},
	}
}

func (a *app) keysRetireCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "retire FILE [NAME...]",
		Short: "Drop the previous keys",
		Long: `Drop the previous key of each NAME, or of all names of the file, when every reporter
and translator has the new one. The key that signs stays.`,
		Example: `  weft keys retire /etc/weft/weft.keys`,
		Args:    argumentCount(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changeKeys(cmd, args, func(keys *keyfile.File, names []string) (c keyChange, err error) {
				c.Dropped, err = keys.Retire(names...)
				return c, err
			})
		},
	}
}

// keyChange is what a command did to a key file.
type keyChange struct {
	File    string   `json:"file"`
	Names   []string `json:"names"`
	Added   int      `json:"keys_added"`
	Dropped int      `json:"keys_dropped"`
}

// changeKeys applies a change to the keys of args[1:], or of all names, in the file
// args[0].
func (a *app) changeKeys(cmd *cobra.Command, args []string, change func(*keyfile.File, []string) (keyChange, error)) error {
	keys, err := keyfile.Read(args[0])
	if err != nil {
		return err
	}
	names := keys.Names()
	if len(args) > 1 {
		names = slices.Compact(slices.Sorted(slices.Values(args[1:])))
	}
	for _, name := range names {
		if keys.Keys(name) == nil {
			return usagef("%s has no key in %s, want one of its names (weft keys check lists them)", name, args[0])
		}
	}
	if len(names) == 0 {
		return usagef("%s has no keys, want some (weft keys new makes a file)", args[0])
	}
	c, err := change(keys, names)
	if err != nil {
		return err
	}
	if err := keys.Replace(args[0]); err != nil {
		return err
	}
	c.File, c.Names = args[0], names
	return a.printKeyChange(cmd.OutOrStdout(), c)
}

func (a *app) printKeyChange(out io.Writer, c keyChange) error {
	if a.format == "json" {
		return printJSON(out, c)
	}
	_, err := fmt.Fprintf(out, "%s: %s added, %d dropped, of %s\n", c.File, plural.Count(c.Added, "key"), c.Dropped,
		plural.Count(len(c.Names), "name"))
	return err
}

func (a *app) keysCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE [TOPOLOGY]",
		Short: "List names and key ids, nodes without a key, and secrets that several names share",
		Long: `Check a key file: its mode and lines, secrets that several names share and, with a
topology, nodes without a key. Names that are not in the topology are translators.

The exit code is 3 if a node has no key or a secret is shared.`,
		Example: `  weft keys check /etc/weft/weft.keys fabric.yaml`,
		Args:    argumentCount(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			keys, err := keyfile.Read(args[0])
			if err != nil {
				return err
			}
			var doc *file.Document
			if len(args) == 2 {
				if doc, err = file.Read(args[1]); err != nil {
					return err
				}
			}
			v := newKeysView(args[0], keys, doc)
			if a.format == "json" {
				err = printJSON(cmd.OutOrStdout(), v)
			} else {
				err = v.print(cmd.OutOrStdout())
			}
			if err == nil && len(v.Without)+len(v.Shared) > 0 {
				err = errFault
			}
			return err
		},
	}
}

// keysView is a key file without its secrets.
type keysView struct {
	File    string        `json:"file"`
	Names   []keyNameView `json:"names"`
	Without []string      `json:"nodes_without_key"`
	Shared  [][]string    `json:"names_with_one_secret"`
}

type keyNameView struct {
	Name string        `json:"name"`
	Node bool          `json:"in_topology"`
	Keys []keyfile.Key `json:"keys"` // the one that signs first
}

// newKeysView compares keys with a topology, which may be nil.
func newKeysView(path string, keys *keyfile.File, doc *file.Document) *keysView {
	v := &keysView{File: path, Names: []keyNameView{}, Without: []string{}, Shared: keys.SharedSecrets()}
	if v.Shared == nil {
		v.Shared = [][]string{}
	}
	for _, name := range keys.Names() {
		n := keyNameView{Name: name, Keys: keys.Keys(name)}
		if doc != nil {
			_, n.Node = doc.Fabric.ByName(name)
		}
		v.Names = append(v.Names, n)
	}
	if doc != nil {
		for _, name := range nodeNames(doc) {
			if keys.Keys(name) == nil {
				v.Without = append(v.Without, name)
			}
		}
	}
	return v
}

func (v *keysView) print(out io.Writer) error {
	var t table
	t.row("NAME", "SIGNS WITH", "ALSO VALID")
	for _, n := range v.Names {
		also := "-"
		if len(n.Keys) > 1 {
			also = n.Keys[1].String()
		}
		t.row(n.Name, n.Keys[0], also)
	}
	if err := t.print(out); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, name := range v.Without {
		fmt.Fprintf(out, "%s has no key\n", name)
	}
	for _, names := range v.Shared {
		fmt.Fprintf(out, "%s share a secret; rotate and retire the keys of all but one\n", strings.Join(names, ", "))
	}
	_, err := fmt.Fprintf(out, "%s with keys, %d without, %s\n", plural.Count(len(v.Names), "name"), len(v.Without),
		plural.Count(len(v.Shared), "shared secret"))
	return err
}

// nodeNames are the names of all switches and hosts.
func nodeNames(doc *file.Document) (names []string) {
	nodes := doc.Fabric.Nodes()
	for i := range nodes {
		names = append(names, nodes[i].Name)
	}
	return names
}
