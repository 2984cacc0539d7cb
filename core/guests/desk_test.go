package guests

import (
	"net/netip"
	"testing"
)

// One source takes half of the desk at most, and nothing of it once it has left.
func TestTheDeskIsShared(t *testing.T) {
	d := NewDesk(4)
	at := netip.MustParseAddr
	var leaves []func()
	for _, c := range []struct {
		from string
		fits bool
	}{
		{"2001:db8::1", true}, {"2001:db8::2", true}, {"2001:db8::3", false}, {"192.0.2.1", true}, {"::ffff:192.0.2.1", true},
		{"192.0.2.1", false}, {"192.0.2.2", false},
	} {
		leave, err := d.Enter(at(c.from))
		if (err == nil) != c.fits {
			t.Errorf("%s: %v", c.from, err)
		}
		if err == nil {
			leaves = append(leaves, leave)
		}
	}
	for _, leave := range leaves {
		leave()
	}
	if held, waiting := d.slots.Count(); held != 0 || waiting != 0 {
		t.Errorf("%d are left at the desk, and %d wait", held, waiting)
	}
}
