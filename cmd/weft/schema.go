package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/serve"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/topo/file"
)

// schemas are the files that have a JSON Schema.
var schemas = map[string]func() []byte{
	"scenario": scenario.JSONSchema,
	"config":   serve.JSONSchema,
	"topology": func() []byte { return file.JSONSchema().Encode("Weft topology") },
}

func schemaCommand() *cobra.Command {
	kinds := slices.Sorted(maps.Keys(schemas))
	return &cobra.Command{
		Use:   "schema " + strings.Join(kinds, "|"),
		Short: "Print the JSON Schema of a file, by which editors complete and check it",
		Long: `Print the JSON Schema (draft 2020-12) of scenario files, topology files, or
configurations of weft serve. Editors with a YAML language server complete keys, show
what they mean and mark unknown ones; a comment in the file names the schema.`,
		Example: `  weft schema scenario > scenario.schema.json
  sed -i '1i # yaml-language-server: $schema=scenario.schema.json' my.yaml
  weft schema config > /etc/weft/config.schema.json`,
		Args: argumentCount(1, 1), ValidArgs: kinds,
		RunE: func(cmd *cobra.Command, args []string) error {
			make, ok := schemas[args[0]]
			if !ok {
				return usagef("schema %q, want one of %s", args[0], strings.Join(kinds, ", "))
			}
			_, err := cmd.OutOrStdout().Write(make())
			return err
		},
	}
}
