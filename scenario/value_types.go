package scenario

import (
	"strconv"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo/file/tree"
)

// Types of values in scenario files.

// share is a part of a whole, "0.3" or "30%".
type share float64

func (p *share) decode(v tree.Value, what string) error {
	return scalar(v, what, "a share such as 0.3 or 30%", func(s string) error {
		f, err := parseShare(s)
		*p = share(f)
		return err
	})
}

func parseShare(s string) (float64, error) {
	body, percent := strings.CutSuffix(s, "%")
	f, err := parseNumber(strings.TrimSpace(body))
	if percent {
		f /= 100
	}
	if err != nil || !(f >= 0 && f <= 1) {
		return 0, errInvalid
	}
	return f, nil
}

// signedSpan is a duration that may be negative.
type signedSpan time.Duration

func (p *signedSpan) decode(v tree.Value, what string) error {
	return scalar(v, what, "a duration such as 10us or -3ms", func(s string) error {
		d, err := time.ParseDuration(s)
		if s == "0" {
			d, err = 0, nil
		}
		*p = signedSpan(d)
		return err
	})
}

// drift is the drift of a clock, "5ppm" or "5e-6".
type drift float64

// maxDrift is far beyond any clock, and keeps times within 64 bits.
const maxDrift = 0.1

func (p *drift) decode(v tree.Value, what string) error {
	return scalar(v, what, "parts per million such as 5ppm, from -0.1 to 0.1", func(s string) error {
		body, ppm := strings.CutSuffix(s, "ppm")
		f, err := parseNumber(strings.TrimSpace(body))
		if ppm {
			f /= 1e6
		}
		if !(f >= -maxDrift && f <= maxDrift) {
			err = errInvalid
		}
		*p = drift(f)
		return err
	})
}

// autoBytes is a size, or "auto", which is 0.
type autoBytes model.Bytes

func (p *autoBytes) decode(v tree.Value, what string) error {
	return scalar(v, what, "auto or a size such as 40KB", func(s string) error {
		if s == "auto" {
			*p = 0
			return nil
		}
		n, err := model.ParseBytes(s)
		if n <= 0 {
			err = errInvalid
		}
		*p = autoBytes(n)
		return err
	})
}

// pauseTime is a duration, or "forever", which is 0.
type pauseTime time.Duration

func (p *pauseTime) decode(v tree.Value, what string) error {
	return scalar(v, what, "forever or a duration such as 300us", func(s string) error {
		if s == "forever" {
			*p = 0
			return nil
		}
		d, err := parseSpan(s)
		if d == 0 {
			err = errInvalid
		}
		*p = pauseTime(d)
		return err
	})
}

// alphaShift is the share of free buffer that a queue may use, "1/8" or
// "0.125", as the power of two it divides by.
type alphaShift uint8

const maxAlphaShift = 10 // of sim.Config

func (p *alphaShift) decode(v tree.Value, what string) error {
	return scalar(v, what, "1, 1/2, 1/4, … or 1/1024", func(s string) error {
		for n := range alphaShift(maxAlphaShift + 1) {
			den := 1 << n
			if s == "1/"+strconv.Itoa(den) || s == strconv.FormatFloat(1/float64(den), 'f', -1, 64) {
				*p = n
				return nil
			}
		}
		return errInvalid
	})
}

// ref is a name that is resolved when the fabric is known.
type ref struct {
	Position
	text string
}

func (p *ref) decode(v tree.Value, what string) (err error) {
	p.Position = v.Position
	p.text, err = v.ColonText(what, "a name")
	p.text = strings.TrimSpace(p.text)
	return err
}

// given reports whether the file has it.
func (p *ref) given() bool { return p.text != "" }
