package settings

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Priorities is a set of priorities 0 to 7, a bit each; in JSON a list of them.
type Priorities uint8

// Has reports whether a priority is in the set.
func (p Priorities) Has(priority int) bool {
	return priority >= 0 && priority < 8 && p>>priority&1 == 1
}

// List returns the priorities, the lowest first.
func (p Priorities) List() []int {
	list := []int{}
	for i := range 8 {
		if p.Has(i) {
			list = append(list, i)
		}
	}
	return list
}

// String prints them, such as "3, 4", or "none".
func (p Priorities) String() string {
	var list []string
	for _, i := range p.List() {
		list = append(list, strconv.Itoa(i))
	}
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// MarshalJSON implements json.Marshaler.
func (p Priorities) MarshalJSON() ([]byte, error) { return json.Marshal(p.List()) }

// UnmarshalJSON implements json.Unmarshaler.
func (p *Priorities) UnmarshalJSON(b []byte) error {
	var list []int
	if err := json.Unmarshal(b, &list); err != nil {
		return fmt.Errorf("priorities: %w", err)
	}
	*p = 0
	for _, i := range list {
		if i < 0 || i > 7 {
			return fmt.Errorf("priority %d, want 0 to 7", i)
		}
		*p |= 1 << i
	}
	return nil
}
