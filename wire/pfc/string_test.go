package pfc

import (
	"testing"

	"github.com/weft-telemetry/weft/model"
)

func TestFrameSaysWhatItDoes(t *testing.T) {
	two := Pause(model.MAC{}, 3, 9)
	two.Enable |= 1<<4 | 1<<5
	two.Times[4] = 1
	for want, f := range map[string]Frame{
		"PFC pause of priority 3":                            Pause(model.MAC{}, 3, 9),
		"PFC resume of priority 3":                           Resume(model.MAC{}, 3),
		"PFC pause of priorities 3, 4, resume of priority 5": two,
		"PFC frame of no priority":                           {},
		"PAUSE frame":                                        PauseLink(model.MAC{}, 9),
		"PAUSE frame: resume":                                PauseLink(model.MAC{}, 0),
	} {
		if got := f.String(); got != want {
			t.Errorf("%+v is %q; want %q", f, got, want)
		}
	}
}
