package sweep

import (
	"context"

	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/store/parquet"
)

// WriteParquet writes the runs of a sweep's CSV file, those of other settings too, as a
// Parquet file.
func WriteParquet(ctx context.Context, csv, to string) error {
	columns := []parquet.Column{
		{Name: "settings", Type: parquet.Text}, {Name: "seed", Type: parquet.Unsigned}, {Name: "verdict", Type: parquet.Text},
	}
	for _, name := range scenario.FigureNames() {
		columns = append(columns, parquet.Column{Name: name, Type: parquet.Real})
	}
	return parquet.FromCSV(ctx, csv, to, columns)
}
