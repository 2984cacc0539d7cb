package person_test

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/person"
)

func TestWhoseDeviceIsKnown(t *testing.T) {
	k := person.Remembered("d", "u", "hash", start)
	for what, c := range map[string]struct {
		user  id.UserID
		hash  string
		after time.Duration
		known bool
	}{
		"at once":                 {"u", "hash", 0, true},
		"until its time is over":  {"u", "hash", person.DeviceLife - 1, true},
		"then":                    {"u", "hash", person.DeviceLife, false},
		"to another person":       {"v", "hash", 0, false},
		"after another password":  {"u", "another", 0, false},
		"once there is none more": {"u", "", 0, false},
	} {
		if got := k.Knows(c.user, c.hash, start.Add(c.after)); got != c.known {
			t.Errorf("%s: %t", what, got)
		}
	}
}
