package report

import (
	"context"
	"path/filepath"

	"github.com/weft-telemetry/weft/store/parquet"
)

// tables are the CSV files of a run, with the types of their columns.
var tables = map[string][]parquet.Column{
	"flows": {
		{Name: "src", Type: parquet.Text},
		{Name: "dst", Type: parquet.Text},
		{Name: "src_addr", Type: parquet.Text},
		{Name: "dst_addr", Type: parquet.Text},
		{Name: "src_port", Type: parquet.Integer},
		{Name: "dst_port", Type: parquet.Integer},
		{Name: "proto", Type: parquet.Text},
		{Name: "priority", Type: parquet.Integer},
		{Name: "transport", Type: parquet.Text},
		{Name: "group", Type: parquet.Text},
		{Name: "bytes", Type: parquet.Integer},
		{Name: "delivered_bytes", Type: parquet.Integer},
		{Name: "retransmitted_packets", Type: parquet.Unsigned},
		{Name: "start_ns", Type: parquet.Integer},
		{Name: "finish_ns", Type: parquet.Integer},
		{Name: "fct_ns", Type: parquet.Integer},
		{Name: "ideal_fct_ns", Type: parquet.Integer},
		{Name: "slowdown", Type: parquet.Real},
		{Name: "finished", Type: parquet.Boolean},
	},
	"ports": {
		{Name: "time_ns", Type: parquet.Integer},
		{Name: "node", Type: parquet.Text},
		{Name: "port", Type: parquet.Integer},
		{Name: "peer", Type: parquet.Text},
		{Name: "queue_bytes", Type: parquet.Integer},
		{Name: "tx_bytes", Type: parquet.Integer},
		{Name: "paused_share", Type: parquet.Real},
	},
	"pauses": {
		{Name: "time_ns", Type: parquet.Integer},
		{Name: "node", Type: parquet.Text},
		{Name: "port", Type: parquet.Integer},
		{Name: "interface", Type: parquet.Text},
		{Name: "priority", Type: parquet.Integer},
		{Name: "pause", Type: parquet.Boolean},
		{Name: "hold_ns", Type: parquet.Integer},
	},
}

// WriteParquet writes the tables of a folder that WriteDir has written as Parquet:
// flows.parquet, ports.parquet and pauses.parquet.
func WriteParquet(ctx context.Context, dir string) error {
	for name, columns := range tables {
		path := filepath.Join(dir, name)
		if err := parquet.FromCSV(ctx, path+".csv", path+".parquet", columns); err != nil {
			return err
		}
	}
	return nil
}
