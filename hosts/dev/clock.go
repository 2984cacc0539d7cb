package dev

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/pgherd/pgherd/adapters/system"
)

// furthest bounds one move of the clock.
const furthest = 10 * 365 * 24 * time.Hour

// moveClock serves POST /dev/clock: {"advanceSeconds": n} moves the time of every part forward.
func moveClock(clock *system.Clock) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			AdvanceSeconds *float64 `json:"advanceSeconds"`
		}
		decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10))
		decoder.DisallowUnknownFields()
		err := decoder.Decode(&body)
		if err != nil || body.AdvanceSeconds == nil || *body.AdvanceSeconds < 0 || *body.AdvanceSeconds > furthest.Seconds() {
			http.Error(w, `{"error":"advanceSeconds must be a number of 0 or more"}`, http.StatusBadRequest)
			return
		}
		clock.Advance(time.Duration(*body.AdvanceSeconds * float64(time.Second)))
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]time.Time{"now": clock.Now()}) // a client that has left is no fault
	}
}
