package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/wire/wireshark"
)

func wiresharkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "wireshark",
		Short: "Print the Wireshark dissector for Weft's headers",
		Example: `  weft wireshark > weft.lua
  wireshark -X lua_script:weft.lua capture.pcapng
  weft wireshark > ~/.local/lib/wireshark/plugins/weft.lua   # permanently`,
		Args: argumentCount(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), wireshark.Dissector)
			return err
		},
	}
}
