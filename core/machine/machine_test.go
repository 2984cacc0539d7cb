package machine

import (
	"slices"
	"testing"

	"github.com/pgherd/pgherd/core/fault"
)

type (
	light string
	press string
)

var lamp = Table[light, press]{
	"on":  {"turn_off": To[light]("off", "cool", "dim"), "turn_on": To[light]("on")},
	"off": {"turn_on": To[light]("on"), "turn_off": Refuse[light](fault.MemberConflict)},
}

func TestDecide(t *testing.T) {
	cell, err := lamp.Decide("on", "turn_off")
	if err != nil || cell.Next != "off" || !slices.Equal(cell.Effects, []string{"cool", "dim"}) {
		t.Errorf("%+v, %v", cell, err)
	}
	_, err = lamp.Decide("off", "turn_off")
	if want := "MEMBER_CONFLICT: turn off is not possible while the status is off"; err == nil || err.Error() != want {
		t.Error(err)
	}
	for _, hole := range []struct {
		from light
		on   press
	}{{"broken", "turn_on"}, {"on", "smash"}} {
		if _, err := lamp.Decide(hole.from, hole.on); !fault.Has(err, fault.InternalError) {
			t.Errorf("%v: %v", hole, err)
		}
	}
}
