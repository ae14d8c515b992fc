package report

import (
	"math"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
)

func TestShow(t *testing.T) {
	for got, want := range map[string]string{
		showBytes(0): "0 B", showBytes(1500): "1.50 kB", showBytes(64000): "64 kB", showBytes(1_711_250): "1.71 MB",
		showBytes(999_600): "1.00 MB", showRate(81_680_000_000): "81.7 Gb/s", showRate(100 * model.Gbps): "100 Gb/s",
		showDuration(12_345): "12.3 µs", showDuration(-1500): "-1.50 µs", showDuration(90 * time.Second): "90 s",
		showDuration(math.MinInt64): "-9223372037 s",
		showAmount(48_200_311):      "48.2 M", showCount(1): "1", showCount(999): "999", showCount(1234567): "1,234,567",
		showSlowdown(2.5): "2.50", showSlowdown(111111.2): "111,111",
		showPercent(0.9987): "99.9 %", countOf(1, "flow"): "1 flow", countOf(0, "flow"): "0 flows",
	} {
		if got != want {
			t.Errorf("printed %q; want %q", got, want)
		}
	}
}
