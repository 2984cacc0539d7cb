package person_test

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/token"
)

func TestHowLongALinkWorks(t *testing.T) {
	for hasPassword, life := range map[bool]time.Duration{true: 30 * time.Minute, false: 7 * 24 * time.Hour} {
		r := person.NewReset("u", hasPassword, token.Of("t"), start)
		if !r.Works(start) || !r.Works(start.Add(life-1)) || r.Works(start.Add(life)) {
			t.Errorf("with a password %t: until %s", hasPassword, r.ExpiresAt)
		}
	}
}
