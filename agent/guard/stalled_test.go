package guard

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWhoStandsStillForTooLong(t *testing.T) {
	const ada, adas, mallory = 1, 2, 3 // sessions; two are of one account
	account := map[int64]string{ada: "ada", adas: "ada", mallory: "mallory"}
	began := time.Now()
	drop, another := began.Add(-time.Second), began.Add(5*time.Second)
	var s standstill
	for i, look := range []struct {
		after    time.Duration
		waits    time.Time
		standing []int64
		want     []int64
	}{
		{0, drop, []int64{ada, mallory}, nil},
		{5 * time.Second, drop, []int64{ada, mallory}, nil},
		{9 * time.Second, drop, []int64{mallory}, nil},              // ada's has gone on,
		{9500 * time.Millisecond, drop, []int64{ada, mallory}, nil}, // and stands again
		{10 * time.Second, drop, []int64{ada, mallory}, []int64{mallory}},
		{10500 * time.Millisecond, drop, []int64{ada, mallory}, nil}, // is ending
		{12 * time.Second, another, []int64{ada, mallory}, nil},      // the first drop has passed
		{13 * time.Second, another, []int64{ada, mallory}, []int64{mallory}},
		{22 * time.Second, another, []int64{ada}, []int64{ada}},
		{23 * time.Second, another, []int64{adas}, nil}, // the account is known now
		{24 * time.Second, another, []int64{adas}, []int64{adas}},
		{2 * time.Hour, another, []int64{adas, mallory}, nil},
		{2*time.Hour + 9*time.Second, another, []int64{adas, mallory}, nil}, // all is forgotten
		{2*time.Hour + 10*time.Second, another, []int64{adas}, []int64{adas}},
	} {
		var all []stalled
		for _, pid := range look.standing {
			all = append(all, stalled{session: session{pid: pid}, account: account[pid]})
		}
		var got []int64
		for _, x := range s.look(look.waits, began.Add(look.after), all) {
			got = append(got, x.pid)
		}
		if diff := cmp.Diff(look.want, got); diff != "" {
			t.Errorf("look %d:\n%s", i, diff)
		}
	}
}
