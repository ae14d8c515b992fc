package traffic

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/weft-telemetry/weft/internal/fileerror"
	"github.com/weft-telemetry/weft/model"
)

// Error is an error in a file. Its text is "file:line: what, want …".
type Error = fileerror.Error

// readFile reads a file, or a pipe, of at most that many bytes.
func readFile(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fileerror.FromOS(path, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, fileerror.FromOS(path, err)
	}
	if int64(len(data)) > most {
		return nil, &Error{File: path, Msg: fmt.Sprintf("more than %v, want less", model.Bytes(most))}
	}
	return data, nil
}

// parseDecimal reads a decimal number that is not negative. Unlike strconv it
// accepts neither infinities nor hexadecimal digits.
func parseDecimal(s string) (float64, bool) {
	if strings.Trim(s, "0123456789.eE+-") != "" {
		return 0, false
	}
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil && v >= 0
}
