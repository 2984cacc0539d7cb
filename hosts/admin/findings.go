package admin

import (
	"encoding/json"

	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
)

// findings are what a check of a server has found, each with what to do where it is not well.
type findings []server.Finding

// MarshalJSON writes an array.
func (f findings) MarshalJSON() ([]byte, error) {
	return json.Marshal(tableOf(f, func(one server.Finding) row {
		do := any(nil)
		if one.Do != "" {
			do = one.Do
		}
		return row{{"check", one.Check}, {"verdict", string(one.Verdict)}, {"found", one.Found}, {"do", do}}
	}))
}

func (f findings) Print(p terminal.Printer) {
	tableOf(f, func(one server.Finding) row {
		found := one.Found
		if one.Do != "" {
			found += ": " + one.Do
		}
		return row{{"check", one.Check}, {"verdict", string(one.Verdict)}, {"found", found}}
	}).Print(p)
}
