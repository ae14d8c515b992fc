package serve

import (
	"errors"
	"fmt"
	"os"

	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/internal/fileerror"
)

// Source is where a configuration comes from. Later ones win: file, environment,
// flags.
type Source struct {
	File  string                           // empty: none
	Env   func(name string) (string, bool) // nil: none
	Flags map[string]string                // by key of the setting
}

// Load reads a configuration and checks it. What is wrong with the file is an
// error with file and line.
func (s Source) Load() (Config, error) {
	c := DefaultConfig()
	lines := map[string]int{}
	if s.File != "" {
		data, err := os.ReadFile(s.File)
		if err != nil {
			return c, fileerror.FromOS(s.File, err)
		}
		if err := parse(s.File, data, &c, lines); err != nil {
			return c, err
		}
	}
	overridden := map[string]string{} // keys by the flag or variable that gave their value
	for i := range settings {
		one := &settings[i]
		if s.Env != nil {
			if text, given := s.Env(one.Env()); given {
				if err := one.Set(&c, text); err != nil {
					return c, fmt.Errorf("%s: %w", one.Env(), err)
				}
				overridden[one.Key] = one.Env()
			}
		}
		if text, given := s.Flags[one.Key]; given {
			if err := one.Set(&c, text); err != nil {
				return c, fmt.Errorf("--%s: %w", one.Flag(), err)
			}
			overridden[one.Key] = "--" + one.Flag()
		}
	}
	if err := c.Check(); err != nil {
		var e *source.KeyError
		if errors.As(err, &e) && overridden[e.Key] != "" {
			return c, fmt.Errorf("%s: %w", overridden[e.Key], err)
		}
		if s.File != "" {
			return c, &fileerror.Error{File: s.File, Line: lineOf(err, lines), Msg: err.Error()}
		}
		return c, err
	}
	return c, nil
}

// lineOf is the line of the key of an error; 0: it is not in the file.
func lineOf(err error, lines map[string]int) int {
	var e *source.KeyError
	if !errors.As(err, &e) {
		return 0
	}
	return lines[e.Key]
}
