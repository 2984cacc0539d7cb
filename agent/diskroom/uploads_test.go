package diskroom

import "testing"

func TestUploadsLeaveHalfOfADisk(t *testing.T) {
	upload := func(of Claimant, bytes, used int64) Reservation {
		return Reservation{Claimant: of, Purpose: Upload, Disk: 1, Bytes: bytes, Used: used}
	}
	for name, c := range map[string]struct {
		all  []Reservation
		asks int64
		free int64
		want bool
	}{
		"half of it":                      {nil, 50, 100, false},
		"a byte more":                     {nil, 51, 100, true},
		"half, beside a backup":           {[]Reservation{{Claimant: "b", Purpose: Dump, Disk: 1, Bytes: 60}}, 50, 100, false},
		"with another's":                  {[]Reservation{upload("a", 30, 0)}, 21, 100, true},
		"beside another's that has come":  {[]Reservation{upload("a", 30, 30)}, 20, 70, false},
		"more, beside one that has come":  {[]Reservation{upload("a", 30, 30)}, 21, 70, true},
		"with its own former one":         {[]Reservation{upload("me", 40, 0)}, 50, 100, false},
		"with another's on another disk":  {[]Reservation{{Claimant: "a", Purpose: Upload, Disk: 2, Bytes: 30}}, 50, 100, false},
		"where the reserve is used up":    {nil, 1, -5, true},
		"beside a copy, which comes back": {[]Reservation{{Claimant: "c", Purpose: Copy, Disk: 1, Bytes: 40, Used: 40}}, 50, 60, false},
	} {
		if got := CrowdsOut(c.all, upload("me", c.asks, 0), Spare{1: c.free, 2: 1000}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
